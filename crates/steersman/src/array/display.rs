//! Arrays as text, laid out as NumPy does: columns aligned, long arrays cut in the middle.

use super::{Array, Data, Shape};
use crate::error::Error;
use crate::view::Element;
use std::fmt;
use steersman_core::DType;

/// Elements from which only the ends are shown.
const THRESHOLD: usize = 1000;
/// Elements shown at each end.
const EDGE: usize = 3;
/// Characters of a line.
const LINE: usize = 75;

/// Computes the array and shows its elements; one that cannot be shows its error.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match cells(self) {
            Ok(cells) if cells.is_empty() => f.write_str("[]"),
            Ok(_) if self.rank() == 0 => f.write_str(&number(self).map_err(|_| fmt::Error)?),
            Ok(cells) => f.write_str(&block(&cells, self.shape(), 0, self.len() > THRESHOLD, 1)),
            Err(e) => write!(f, "<no array: {e}>"),
        }
    }
}

/// Element type and shape, and whether it is computed; computes nothing.
impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bad() {
            Some(why) => write!(f, "Array(error: {why})"),
            None => {
                let state = if self.is_ready() { "" } else { ", not computed" };
                write!(f, "Array({} {}{state})", self.dtype(), Shape(self.shape()))
            }
        }
    }
}

/// Shown elements by position; those cut out are empty.
fn cells(a: &Array) -> Result<Vec<String>, Error> {
    let text = |x: &dyn fmt::Display| x.to_string();
    Ok(match a.dtype() {
        DType::F32 => floats(shown(a, a.data::<f32>()?, |x| (x as f64, short(x)))),
        DType::F64 => floats(shown(a, a.data::<f64>()?, |x| (x, short(x)))),
        DType::F16 => floats(shown(a, a.data::<half::f16>()?, |x| (x.to_f64(), f16(x)))),
        DType::BF16 => floats(shown(a, a.data::<half::bf16>()?, |x| (x.to_f64(), bf16(x)))),
        DType::I32 => aligned(shown(a, a.data::<i32>()?, |x| text(&x))),
        DType::U32 => aligned(shown(a, a.data::<u32>()?, |x| text(&x))),
        DType::I64 => aligned(shown(a, a.data::<i64>()?, |x| text(&x))),
        DType::U8 => aligned(shown(a, a.data::<u8>()?, |x| text(&x))),
        DType::Bool => aligned(shown(a, a.data::<bool>()?, |x| truth(x).into())),
    })
}

/// A scalar alone: floats with all their digits.
fn number(a: &Array) -> Result<String, Error> {
    Ok(match a.dtype() {
        DType::F32 => alone(&short(a.item::<f32>()?)),
        DType::F64 => alone(&short(a.item::<f64>()?)),
        DType::F16 => alone(&f16(a.item()?)),
        DType::BF16 => alone(&bf16(a.item()?)),
        DType::I32 => a.item::<i32>()?.to_string(),
        DType::U32 => a.item::<u32>()?.to_string(),
        DType::I64 => a.item::<i64>()?.to_string(),
        DType::U8 => a.item::<u8>()?.to_string(),
        DType::Bool => truth(a.item()?).into(),
    })
}

/// As Python writes a float.
fn alone(text: &str) -> String {
    let x: f64 = text.parse().unwrap_or(f64::NAN);
    match x.abs() {
        _ if x.is_nan() => "nan".into(),
        m if m.is_infinite() => (if x > 0.0 { "inf" } else { "-inf" }).into(),
        m if m != 0.0 && !(1e-4..1e16).contains(&m) => scientific(text).replace(".e", "e"),
        _ if text.contains('.') => text.into(),
        _ => format!("{text}.0"),
    }
}

fn truth(x: bool) -> &'static str {
    if x { "True" } else { "False" }
}

fn shown<T: Element, R>(a: &Array, data: Data<T>, f: impl Fn(T) -> R) -> Vec<Option<R>> {
    let all = data.len() <= THRESHOLD;
    let visible = |mut i: usize| {
        all || a.shape().iter().rev().all(|&d| {
            let at = i % d;
            i /= d;
            d <= 2 * EDGE || at < EDGE || at >= d - EDGE
        })
    };
    data.iter().enumerate().map(|(i, &x)| visible(i).then(|| f(x))).collect()
}

/// The fewest digits that tell the number from its neighbours.
fn short<T: fmt::Display>(x: T) -> String {
    x.to_string()
}

fn f16(x: half::f16) -> String {
    fewest(x.to_f64(), |d| half::f16::from_f64(d) == x)
}

fn bf16(x: half::bf16) -> String {
    fewest(x.to_f64(), |d| half::bf16::from_f64(d) == x)
}

/// The same for types that do not print themselves: as few digits as still are the number.
fn fewest(x: f64, same: impl Fn(f64) -> bool) -> String {
    let rounded = (0..8).filter_map(|digits| format!("{x:.digits$e}").parse::<f64>().ok());
    rounded.into_iter().find(|&d| same(d)).unwrap_or(x).to_string()
}

/// All in one style: with exponents if the numbers are very large, very small or very different.
fn floats(values: Vec<Option<(f64, String)>>) -> Vec<String> {
    let magnitudes = || values.iter().flatten().map(|(x, _)| x.abs()).filter(|x| x.is_finite() && *x > 0.0);
    let (low, high) = (magnitudes().fold(f64::INFINITY, f64::min), magnitudes().fold(0.0, f64::max));
    let exponents = high >= 1e8 || (high > 0.0 && (low < 1e-4 || high / low > 1000.0));
    let cell = |(x, text): &(f64, String)| match () {
        () if x.is_nan() => "nan".into(),
        () if x.is_infinite() => (if *x > 0.0 { "inf" } else { "-inf" }).into(),
        () if exponents => scientific(text),
        () => positional(text),
    };
    let cells: Vec<Option<String>> = values.iter().map(|v| v.as_ref().map(cell)).collect();
    if exponents {
        // As many places everywhere, filled with zeros.
        let places = |c: &String| c.split_once(['.', 'e']).map_or(0, |(_, r)| r.find('e').unwrap_or(0));
        let most = cells.iter().flatten().map(places).max().unwrap_or(0);
        let filled = |c: String| match c.split_once('e') {
            Some((mantissa, e)) => format!("{mantissa}{}e{e}", "0".repeat(most - places(&c))),
            None => c,
        };
        return aligned(cells.into_iter().map(|c| c.map(filled)).collect());
    }
    // Points stand below each other: as many places after the point everywhere, filled with blanks.
    let places = |c: &String| c.split_once('.').map_or(0, |(_, p)| p.len() + 1);
    let most = cells.iter().flatten().map(places).max().unwrap_or(0);
    let filled =
        |c: String| if c.contains('.') { format!("{c}{}", " ".repeat(most - places(&c))) } else { c };
    aligned(cells.into_iter().map(|c| c.map(filled)).collect())
}

/// At most eight places after the point, none that are zero at the end.
fn positional(text: &str) -> String {
    match text.split_once('.') {
        None => format!("{text}."),
        Some((_, places)) if places.len() <= 8 => text.into(),
        Some(_) => {
            let x: f64 = text.parse().unwrap_or(0.0);
            let cut = format!("{x:.8}");
            cut.trim_end_matches('0').into()
        }
    }
}

/// `1.5e+03`, with at most eight places.
fn scientific(text: &str) -> String {
    let x: f64 = text.parse().unwrap_or(0.0);
    let full = format!("{x:e}");
    let full = if full.len() > 14 { format!("{x:.8e}") } else { full };
    let (mantissa, exponent) = full.split_once('e').unwrap_or((&full, "0"));
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').to_string()
    } else {
        format!("{mantissa}.")
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn aligned(cells: Vec<Option<String>>) -> Vec<String> {
    let width = cells.iter().flatten().map(|c| c.len()).max().unwrap_or(0);
    cells.into_iter().map(|c| c.map_or(String::new(), |c| format!("{c:>width$}"))).collect()
}

/// One axis in brackets: elements on lines, or blocks below each other. At most 8 deep.
fn block(cells: &[String], dims: &[usize], first: usize, cut: bool, indent: usize) -> String {
    let Some((&n, rest)) = dims.split_first() else { return cells[first].clone() };
    let part: usize = rest.iter().product();
    let cut_here = cut && n > 2 * EDGE;
    let ends = (0..n).filter(|&i| !cut_here || i < EDGE || i >= n - EDGE);
    let mut out = String::from("[");
    let mut column = indent;
    for i in ends {
        let piece = block(cells, rest, first + i * part, cut, indent + 1);
        let gap = cut_here && i == n - EDGE;
        if rest.is_empty() {
            let pieces = [gap.then(|| "...".to_string()), Some(piece)];
            for (k, piece) in pieces.into_iter().flatten().enumerate() {
                let start = i == 0 && k == 0;
                if !start && column + 1 + piece.len() > LINE - indent {
                    out.truncate(out.trim_end().len());
                    out.push('\n');
                    out.push_str(&" ".repeat(indent));
                    column = indent;
                } else if !start {
                    out.push(' ');
                    column += 1;
                }
                column += piece.len();
                out.push_str(&piece);
            }
        } else {
            let line = format!("{}{}", "\n".repeat(rest.len()), " ".repeat(indent));
            if gap {
                out.push_str(&format!("{line}..."));
            }
            if i > 0 {
                out.push_str(&line);
            }
            out.push_str(&piece);
        }
    }
    out.push(']');
    out
}
