//! Blocks of results: every invocation holds several rows by several columns in registers, and the operands' tiles
//! pass through workgroup memory, in fours.
//!
//! Operands are functions of the shader: `a(at, row, k)` and `b(at, k, column)` give single elements, zero beyond
//! an edge; `a4` and `b4`, where there are such, four neighbours. Results go to `put(at, row, column, value)` or
//! four at a time to `put4`.

use std::fmt::Write;

/// How a workgroup cuts its part of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    /// Invocations across and down.
    pub x: u32,
    pub y: u32,
    /// Results of an invocation, down and across; in fours.
    pub rows: u32,
    pub columns: u32,
    /// Terms that pass through workgroup memory at a time.
    pub depth: u32,
    /// Whether the next terms are fetched while these are computed with.
    pub ahead: bool,
}

const fn tile(x: u32, y: u32, rows: u32, columns: u32, depth: u32, ahead: bool) -> Tile {
    Tile { x, y, rows, columns, depth, ahead }
}

/// Tiles by variant. The order is what is remembered of them: new ones go at the end.
pub(crate) const TILES: [Tile; 16] = [
    tile(8, 8, 4, 4, 8, false),
    tile(16, 16, 4, 4, 16, false),
    tile(8, 8, 8, 4, 8, false),
    tile(8, 8, 8, 8, 8, false),
    tile(8, 8, 8, 8, 16, true),
    tile(16, 8, 8, 4, 16, false),
    tile(16, 8, 8, 4, 16, true),
    tile(16, 16, 8, 4, 16, true),
    tile(16, 8, 8, 8, 8, true),
    tile(16, 8, 8, 8, 16, true),
    tile(16, 16, 8, 8, 8, false),
    tile(16, 16, 8, 8, 16, false),
    tile(16, 16, 8, 8, 8, true),
    tile(16, 16, 8, 8, 16, true),
    tile(32, 8, 8, 4, 16, true),
    tile(32, 8, 16, 4, 8, true),
];

impl Tile {
    /// Rows of results of a workgroup.
    pub fn down(&self) -> u32 {
        self.y * self.rows
    }

    /// Columns of results of a workgroup.
    pub fn across(&self) -> u32 {
        self.x * self.columns
    }

    /// Words of workgroup memory, for elements of one word.
    pub fn words(&self) -> u32 {
        (self.down() + self.across()) * self.depth
    }
}

/// How an operand's elements are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Lane {
    /// One by one.
    Single,
    /// Four neighbours along the terms of a sum.
    Deep,
    /// Four neighbours along the results.
    Wide,
}

/// Declarations and the body of a product's block, at row `g.y` and column `g.x` of workgroups. `t` is the type of
/// elements; `lanes` are those of the operands.
pub(crate) fn block(tile: &Tile, t: &str, zero: &str, lanes: [Lane; 2], fours: bool) -> (String, String) {
    let (down4, across4) = (tile.down() / 4, tile.across() / 4);
    let shared = format!(
        "var<workgroup> ta: array<vec4<{t}>, {}>;\nvar<workgroup> tb: array<vec4<{t}>, {}>;\n",
        tile.depth * down4,
        tile.depth * across4
    );
    let a = Fetch::new(tile, "a", down4, lanes[0], t);
    let b = Fetch::new(tile, "b", across4, lanes[1], t);
    let (mut sums, mut adds, mut puts) = (String::new(), String::new(), String::new());
    let (row_fours, column_fours) = (tile.rows / 4, tile.columns / 4);
    for i in 0..row_fours {
        let _ = writeln!(adds, "                let a{i} = ta[k * {down4}u + l.y + {}u];", i * tile.y);
    }
    for j in 0..column_fours {
        let _ = writeln!(adds, "                let b{j} = tb[k * {across4}u + l.x + {}u];", j * tile.x);
    }
    for i in 0..row_fours {
        for r in 0..4 {
            for j in 0..column_fours {
                let s = format!("s{}_{j}", i * 4 + r);
                let _ = writeln!(sums, "        var {s} = vec4<{t}>({zero});");
                let _ = writeln!(adds, "                {s} += a{i}[{r}] * b{j};");
                let row = format!("r0 + (l.y + {}u) * 4u + {r}u", i * tile.y);
                let column = format!("c0 + (l.x + {}u) * 4u", j * tile.x);
                if fours {
                    let _ = writeln!(puts, "        put4(cc, {row}, {column}, {s});");
                } else {
                    for e in 0..4 {
                        let _ = writeln!(puts, "        put(cc, {row}, {column} + {e}u, {s}[{e}]);");
                    }
                }
            }
        }
    }
    let fetch = |k0: &str| a.fetch(k0) + &b.fetch(k0);
    let keep = a.keep() + &b.keep();
    let (first, before, during) = match tile.ahead {
        false => (String::new(), fetch("k0"), String::new()),
        true => {
            let next = fetch(&format!("(k0 + {}u)", tile.depth));
            let during = format!("            if (k0 + {}u < p.k) {{\n{next}            }}\n", tile.depth);
            (fetch("0u"), String::new(), during)
        }
    };
    let (down, across, depth) = (tile.down(), tile.across(), tile.depth);
    let body = format!(
        "        let r0 = g.y * {down}u; let c0 = g.x * {across}u; let id = l.y * {x}u + l.x;\n\
         {sums}{da}{db}{first}\
         \x20       for (var k0 = 0u; k0 < p.k; k0 += {depth}u) {{\n{before}{keep}\
         \x20           workgroupBarrier();\n{during}\
         \x20           for (var k = 0u; k < {depth}u; k += 1u) {{\n{adds}            }}\n\
         \x20           workgroupBarrier();\n\
         \x20       }}\n{puts}",
        x = tile.x,
        da = a.declared(),
        db = b.declared(),
    );
    (shared, body)
}

/// The way of one operand's tile into workgroup memory.
struct Fetch<'a> {
    name: &'a str,
    t: &'a str,
    lane: Lane,
    /// Fours of rows or columns.
    fours: u32,
    depth: u32,
    /// Invocations, and pieces of the tile that are fetched at once.
    all: u32,
    items: u32,
}

impl<'a> Fetch<'a> {
    fn new(tile: &Tile, name: &'a str, fours: u32, lane: Lane, t: &'a str) -> Fetch<'a> {
        let items = if lane == Lane::Deep { fours * tile.depth / 4 } else { fours * tile.depth };
        Fetch { name, t, lane, fours, depth: tile.depth, all: tile.x * tile.y, items }
    }

    /// Vectors of a piece: four neighbours each.
    fn vectors(&self) -> u32 {
        if self.lane == Lane::Deep { 4 } else { 1 }
    }

    fn declared(&self) -> String {
        let of = |i: u32| (0..self.vectors()).map(move |c| (i, c));
        let each = (0..self.items.div_ceil(self.all)).flat_map(of);
        each.map(|(i, c)| format!("        var p{}{i}_{c}: vec4<{}>;\n", self.name, self.t)).collect()
    }

    /// `text` for each piece, which it names by its number, its four of rows or columns and its term.
    fn each(&self, text: impl Fn(u32, &str, &str) -> String) -> String {
        let mut all = String::new();
        for i in 0..self.items.div_ceil(self.all) {
            let part = (i + 1) * self.all > self.items;
            let open = if part { format!("if (q < {}u) ", self.items) } else { String::new() };
            // Neighbours in memory go to neighbouring invocations: along the terms where rows lie so.
            let (w, k) = match (self.lane, self.name) {
                (Lane::Deep, _) => {
                    (format!("q / {}u", self.depth / 4), format!("(q % {}u) * 4u", self.depth / 4))
                }
                (Lane::Single, "a") => (format!("q / {}u", self.depth), format!("q % {}u", self.depth)),
                _ => (format!("q % {}u", self.fours), format!("q / {}u", self.fours)),
            };
            let _ = write!(
                all,
                "            {{ let q = id + {}u; {open}{{ let w = {w}; let kk = {k};\n{}            }} }}\n",
                i * self.all,
                text(i, "w", "kk")
            );
        }
        all
    }

    fn fetch(&self, k0: &str) -> String {
        let at = |w: &str, k: &str, offset: u32| match self.name {
            "a" => format!("aa, r0 + {w} * 4u + {offset}u, {k0} + {k}"),
            _ => format!("bb, {k0} + {k}, c0 + {w} * 4u + {offset}u"),
        };
        let name = self.name;
        self.each(|i, w, k| match self.lane {
            Lane::Single => {
                let one = |e| format!("{name}({})", at(w, k, e));
                let all: Vec<String> = (0..4).map(one).collect();
                format!("                p{name}{i}_0 = vec4<{}>({});\n", self.t, all.join(", "))
            }
            Lane::Wide => format!("                p{name}{i}_0 = {name}4({});\n", at(w, k, 0)),
            Lane::Deep => (0..4)
                .map(|e| format!("                p{name}{i}_{e} = {name}4({});\n", at(w, k, e)))
                .collect(),
        })
    }

    fn keep(&self) -> String {
        let (name, fours) = (self.name, self.fours);
        self.each(|i, w, k| match self.lane {
            Lane::Deep => (0..4)
                .map(|c| {
                    let all: Vec<String> = (0..4).map(|e| format!("p{name}{i}_{e}[{c}]")).collect();
                    let value = format!("vec4<{}>({})", self.t, all.join(", "));
                    format!("                t{name}[({k} + {c}u) * {fours}u + {w}] = {value};\n")
                })
                .collect(),
            _ => format!("                t{name}[{k} * {fours}u + {w}] = p{name}{i}_0;\n"),
        })
    }
}
