//! Philox 4x32-10: counters in, random words out (Salmon, Moraes, Dror and Shaw, 2011).

const MULTIPLY: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

/// The four words of one counter.
///
/// ```
/// // Published with the generator: all zeros in.
/// assert_eq!(steersman_cpu::random::block([0; 2], [0; 4]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
/// ```
#[inline(always)]
pub fn block(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let mut x = counter.map(u64::from);
    for round in 0..ROUNDS {
        x = mix(x, key, round);
    }
    x.map(|w| w as u32)
}

/// One round. Words are the low halves of lanes of 64 bits, what is above them is of no account: a product
/// then is one instruction that gives both its halves.
#[inline(always)]
fn mix(x: [u64; 4], key: [u32; 2], round: u32) -> [u64; 4] {
    let low = |w: u64| w & 0xffff_ffff;
    let bump = |i: usize| u64::from(key[i].wrapping_add(WEYL[i].wrapping_mul(round)));
    let (p, q) = (low(x[0]) * u64::from(MULTIPLY[0]), low(x[2]) * u64::from(MULTIPLY[1]));
    [(q >> 32) ^ x[1] ^ bump(0), q, (p >> 32) ^ x[3] ^ bump(1), p]
}

/// The words of consecutive counters, first words together.
pub(super) struct Lanes<const N: usize>(pub [[u32; N]; 4]);

impl<const N: usize> Lanes<N> {
    #[inline(always)]
    pub fn new() -> Self {
        Lanes([[0; N]; 4])
    }

    /// The words of `n` counters from `first` on.
    #[inline(always)]
    pub fn fill(&mut self, key: u64, first: u64, n: usize) {
        let key = [key as u32, (key >> 32) as u32];
        let [w0, w1, w2, w3] = &mut self.0;
        let n = n.min(N);
        for i in 0..n {
            let counter = first.wrapping_add(i as u64);
            let mut x = [counter, counter >> 32, 0, 0];
            // Written out, so that the loop over counters is the innermost, of which vectors are made.
            x = mix(x, key, 0);
            x = mix(x, key, 1);
            x = mix(x, key, 2);
            x = mix(x, key, 3);
            x = mix(x, key, 4);
            x = mix(x, key, 5);
            x = mix(x, key, 6);
            x = mix(x, key, 7);
            x = mix(x, key, 8);
            x = mix(x, key, 9);
            w0[i] = x[0] as u32;
            w1[i] = x[1] as u32;
            w2[i] = x[2] as u32;
            w3[i] = x[3] as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_answers_come_out() {
        let all = u32::MAX;
        assert_eq!(block([all; 2], [all; 4]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let pi = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344];
        let answer = [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1];
        assert_eq!(block([0xa4093822, 0x299f31d0], pi), answer);
    }

    #[test]
    fn lanes_are_blocks_side_by_side() {
        let mut lanes = Lanes::<32>::new();
        let (key, first) = (0x0123_4567_89ab_cdefu64, u64::from(u32::MAX) - 5);
        lanes.fill(key, first, 32);
        for i in 0..32 {
            let counter = first + i as u64;
            let words =
                block([key as u32, (key >> 32) as u32], [counter as u32, (counter >> 32) as u32, 0, 0]);
            assert_eq!(lanes.0.map(|w| w[i]), words);
        }
    }
}
