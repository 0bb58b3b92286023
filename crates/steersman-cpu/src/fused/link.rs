//! Which calls go on with each other's values, and become chains.

use super::assembly::{Pending, Spot};
use super::chain::{self, Code, Micro, NOWHERE, Other};
use super::lower::Lowered;
use super::program::Place;

/// How a call stands to the one after it.
pub(super) struct Link {
    /// `f64` or `f32`, if it can be a step of a chain at all.
    pub wide: Option<bool>,
    /// Whether the next one goes on with what this one gives.
    pub joins: bool,
    /// Whether what it gives is needed elsewhere than in the next one.
    pub kept: bool,
}

pub(super) fn links(lowered: &Lowered, pending: &[Pending]) -> Vec<Link> {
    let mut uses = vec![0u32; lowered.lows.len()];
    lowered.lows.iter().flat_map(|l| &l.args).for_each(|&a| uses[a as usize] += 1);
    lowered.outs.iter().for_each(|o| uses[o.value() as usize] += 1);
    let low = |i: usize| pending.get(i).and_then(|p| p.id).map(|id| (id, &lowered.lows[id as usize]));
    let link = |i: usize| {
        let mut link = Link { wide: None, joins: false, kept: true };
        let Some((id, this)) = low(i) else { return link };
        // As the first of a chain it goes on with its own first argument.
        let mut first: Vec<bool> = this.args.iter().map(|_| false).collect();
        first.iter_mut().take(1).for_each(|f| *f = true);
        link.wide = this.op.and_then(|(op, wide)| chain::code(op, &first).map(|_| wide));
        if let (Some(wide), Some((_, next))) = (link.wide, low(i + 1)) {
            let hand: Vec<bool> = next.args.iter().map(|&a| a == id).collect();
            let times = hand.iter().filter(|h| **h).count() as u32;
            let code = next.op.filter(|(_, w)| *w == wide).and_then(|(op, _)| chain::code(op, &hand));
            link.joins = times > 0 && code.is_some();
            link.kept = uses[id as usize] > times;
        }
        link
    };
    (0..pending.len()).map(link).collect()
}

/// Writes the steps of a run of calls that go on with each other's values.
pub(super) fn push_chain(
    lowered: &Lowered,
    run: &[Pending],
    links: &[Link],
    place: &impl Fn(Spot) -> Place,
    micros: &mut Vec<Micro>,
) {
    let other = |spot: Spot| Other { place: place(spot), same: matches!(spot, Spot::Uniform(_)) };
    let mut hand = None;
    for (i, (call, link)) in run.iter().zip(links).enumerate() {
        let Some((op, args)) = call.id.and_then(|id| {
            let low = &lowered.lows[id as usize];
            low.op.map(|(op, _)| (op, &low.args))
        }) else {
            return;
        };
        let hands: Vec<bool> = match hand {
            Some(hand) => args.iter().map(|&a| a == hand).collect(),
            // The first one's first argument is loaded.
            None => {
                let load = Micro {
                    code: Code::Load,
                    y: other(call.args[0]),
                    z: NOWHERE,
                    store: Place::MAX,
                    past: false,
                };
                micros.push(load);
                (0..args.len()).map(|k| k == 0).collect()
            }
        };
        let mut others = call.args.iter().zip(&hands).filter(|(_, h)| !**h).map(|(&s, _)| other(s));
        let (y, z) = (others.next().unwrap_or(NOWHERE), others.next().unwrap_or(NOWHERE));
        let last = i + 1 == run.len();
        let store = if last || link.kept { place(call.out) } else { Place::MAX };
        // Links are only made where there is a step for the pattern.
        if let Some(code) = chain::code(op, &hands) {
            micros.push(Micro { code, y, z, store, past: false });
        }
        hand = call.id;
    }
}
