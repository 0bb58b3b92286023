//! In what order steps run, so that few values live at once: what lives has to stay in cache.

use super::lower::{Id, Low, Lowered, Work};

/// Whether a step runs for every tile, rather than once or not at all.
pub fn is_tiled(low: &Low) -> bool {
    !low.uniform && !matches!(low.work, Work::Input(_))
}

/// The steps that outputs need, in the order that keeps fewest values alive: as given, or depth first.
/// Programs that draw all their random numbers first and use them one by one need the latter.
pub fn order(program: &Lowered) -> Vec<Id> {
    let deep = depth_first(program);
    let mut given = deep.clone();
    given.sort_unstable();
    if most_alive(program, &deep) < most_alive(program, &given) { deep } else { given }
}

/// Steps after those they need, each output's before the next one's.
fn depth_first(program: &Lowered) -> Vec<Id> {
    let mut order = Vec::with_capacity(program.lows.len());
    let mut seen = vec![false; program.lows.len()];
    let mut stack: Vec<(Id, usize)> = Vec::new();
    for out in &program.outs {
        stack.push((out.value(), 0));
        while let Some((id, next)) = stack.pop() {
            if next == 0 && std::mem::replace(&mut seen[id as usize], true) {
                continue;
            }
            match program.lows[id as usize].args.get(next) {
                Some(&arg) => {
                    stack.push((id, next + 1));
                    if !seen[arg as usize] {
                        stack.push((arg, 0));
                    }
                }
                None => order.push(id),
            }
        }
    }
    order
}

/// For each step of an order, how many values end with it; `usize::MAX` is never.
pub fn last_uses(program: &Lowered, order: &[Id]) -> Vec<usize> {
    let mut last = vec![0; program.lows.len()];
    for (at, &id) in order.iter().enumerate() {
        program.lows[id as usize].args.iter().for_each(|&a| last[a as usize] = at);
    }
    program.outs.iter().for_each(|o| last[o.value() as usize] = usize::MAX);
    last
}

fn most_alive(program: &Lowered, order: &[Id]) -> usize {
    let last = last_uses(program, order);
    let (mut alive, mut most) = (0usize, 0);
    for (at, &id) in order.iter().enumerate() {
        let low = &program.lows[id as usize];
        if !is_tiled(low) {
            continue;
        }
        alive += 1;
        most = most.max(alive);
        let ends = |&&a: &&Id| last[a as usize] == at && is_tiled(&program.lows[a as usize]);
        let mut args: Vec<&Id> = low.args.iter().filter(ends).collect();
        args.dedup();
        alive -= args.len().min(alive);
    }
    most
}
