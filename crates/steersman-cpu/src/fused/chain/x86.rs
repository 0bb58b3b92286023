//! Chains on the vector registers of x86-64, by name.

use super::{Code, Micro, Other, Place};
use std::arch::x86_64::*;

/// The functions of one type on one instruction set. Blocks of `$most` registers, then of `$some`, then single
/// ones, the last of them perhaps in part.
macro_rules! chain {
    ($name:ident, $block:ident, $features:literal, $t:ident, $v:ident, $lanes:literal, $most:literal, $some:literal,
     load: $load:ident, store: $store:ident, stream: $stream:ident, splat: $splat:ident, zero: $zero:ident,
     part: |$lp:ident, $ln:ident| $part:expr, put: |$sp:ident, $sn:ident, $sx:ident| $put:expr,
     $add:ident $sub:ident $mul:ident $div:ident $sqrt:ident $fma:ident $hmin:ident $hmax:ident,
     xor: |$xa:ident, $xb:ident| $xor:expr, keep: |$ka:ident, $kb:ident| $keep:expr,
     nan_first: |$na:ident, $nm:ident| $nan:expr, positive: |$px:ident| $positive:expr) => {
        /// One block of `B` registers; with `PART`, of one register of which `left` elements count.
        #[target_feature(enable = $features)]
        #[inline]
        unsafe fn $block<const B: usize, const PART: bool>(
            at: *const *mut u8,
            micros: &[Micro],
            from: usize,
            left: usize,
        ) {
            // SAFETY: by the contract of chains; blocks lie within `n` elements.
            unsafe {
                let mut x = [$zero(); B];
                for m in micros {
                    macro_rules! one {
                        ($o:expr) => {
                            $splat(*(*at.add($o.place as usize)).cast::<$t>())
                        };
                    }
                    macro_rules! many {
                        ($o:expr, $j:expr) => {{
                            let p = (*at.add($o.place as usize)).cast::<$t>().add(from + $j * $lanes);
                            if PART {
                                let ($lp, $ln) = (p, left);
                                $part
                            } else {
                                $load(p)
                            }
                        }};
                    }
                    macro_rules! each {
                        ($f:ident) => {{
                            let Other { same, .. } = m.y;
                            if same {
                                let y = one!(m.y);
                                for j in 0..B {
                                    x[j] = $f!(x[j], y);
                                }
                            } else {
                                for j in 0..B {
                                    let y = many!(m.y, j);
                                    x[j] = $f!(x[j], y);
                                }
                            }
                        }};
                    }
                    macro_rules! own {
                        ($f:ident) => {
                            for j in 0..B {
                                x[j] = $f!(x[j]);
                            }
                        };
                    }
                    macro_rules! three {
                        ($f:ident) => {
                            for j in 0..B {
                                let y = if m.y.same { one!(m.y) } else { many!(m.y, j) };
                                let z = if m.z.same { one!(m.z) } else { many!(m.z, j) };
                                x[j] = $f!(x[j], y, z);
                            }
                        };
                    }
                    macro_rules! load {
                        ($x:expr, $y:expr) => {
                            $y
                        };
                    }
                    macro_rules! add {
                        ($x:expr, $y:expr) => {
                            $add($x, $y)
                        };
                    }
                    macro_rules! sub {
                        ($x:expr, $y:expr) => {
                            $sub($x, $y)
                        };
                    }
                    macro_rules! sub_from {
                        ($x:expr, $y:expr) => {
                            $sub($y, $x)
                        };
                    }
                    macro_rules! mul {
                        ($x:expr, $y:expr) => {
                            $mul($x, $y)
                        };
                    }
                    macro_rules! div {
                        ($x:expr, $y:expr) => {
                            $div($x, $y)
                        };
                    }
                    macro_rules! div_into {
                        ($x:expr, $y:expr) => {
                            $div($y, $x)
                        };
                    }
                    // The instruction gives its second operand if either is NaN: the first must be seen to.
                    macro_rules! min {
                        ($x:expr, $y:expr) => {{
                            let ($na, $nm) = ($x, $hmin($x, $y));
                            $nan
                        }};
                    }
                    macro_rules! min_of {
                        ($x:expr, $y:expr) => {{
                            let ($na, $nm) = ($y, $hmin($y, $x));
                            $nan
                        }};
                    }
                    macro_rules! max {
                        ($x:expr, $y:expr) => {{
                            let ($na, $nm) = ($x, $hmax($x, $y));
                            $nan
                        }};
                    }
                    macro_rules! max_of {
                        ($x:expr, $y:expr) => {{
                            let ($na, $nm) = ($y, $hmax($y, $x));
                            $nan
                        }};
                    }
                    macro_rules! fma {
                        ($x:expr, $y:expr, $z:expr) => {
                            $fma($x, $y, $z)
                        };
                    }
                    macro_rules! fma_to {
                        ($x:expr, $y:expr, $z:expr) => {
                            $fma($y, $z, $x)
                        };
                    }
                    macro_rules! double {
                        ($x:expr) => {
                            $add($x, $x)
                        };
                    }
                    macro_rules! square {
                        ($x:expr) => {
                            $mul($x, $x)
                        };
                    }
                    macro_rules! neg {
                        ($x:expr) => {{
                            let ($xa, $xb) = ($x, $splat(-0.0));
                            $xor
                        }};
                    }
                    macro_rules! abs {
                        ($x:expr) => {{
                            let ($ka, $kb) = ($splat(-0.0), $x);
                            $keep
                        }};
                    }
                    macro_rules! sqrt {
                        ($x:expr) => {
                            $sqrt($x)
                        };
                    }
                    macro_rules! recip {
                        ($x:expr) => {
                            $div($splat(1.0), $x)
                        };
                    }
                    macro_rules! relu {
                        ($x:expr) => {{
                            let $px = $x;
                            $positive
                        }};
                    }
                    match m.code {
                        Code::Load => each!(load),
                        Code::Add => each!(add),
                        Code::Sub => each!(sub),
                        Code::SubFrom => each!(sub_from),
                        Code::Mul => each!(mul),
                        Code::Div => each!(div),
                        Code::DivInto => each!(div_into),
                        Code::Min => each!(min),
                        Code::MinOf => each!(min_of),
                        Code::Max => each!(max),
                        Code::MaxOf => each!(max_of),
                        Code::Fma => three!(fma),
                        Code::FmaTo => three!(fma_to),
                        Code::Double => own!(double),
                        Code::Square => own!(square),
                        Code::Neg => own!(neg),
                        Code::Abs => own!(abs),
                        Code::Sqrt => own!(sqrt),
                        Code::Recip => own!(recip),
                        Code::Relu => own!(relu),
                    }
                    if m.store != Place::MAX {
                        let to = (*at.add(m.store as usize)).cast::<$t>().add(from);
                        if m.past && !PART && to.cast::<u8>().align_offset(size_of::<$v>()) == 0 {
                            for (j, &v) in x.iter().enumerate() {
                                $stream(to.add(j * $lanes).cast(), v);
                            }
                            continue;
                        }
                        for (j, &v) in x.iter().enumerate() {
                            let p = to.add(j * $lanes);
                            if PART {
                                let ($sp, $sn, $sx) = (p, left, v);
                                $put
                            } else {
                                $store(p, v);
                            }
                        }
                    }
                }
            }
        }

        #[target_feature(enable = $features)]
        unsafe fn $name(at: *const *mut u8, micros: &[Micro], n: usize) {
            let mut i = 0;
            // SAFETY: passed on; each block lies within `n`.
            unsafe {
                while n - i >= $most * $lanes {
                    $block::<$most, false>(at, micros, i, 0);
                    i += $most * $lanes;
                }
                while n - i >= $some * $lanes {
                    $block::<$some, false>(at, micros, i, 0);
                    i += $some * $lanes;
                }
                while n - i >= $lanes {
                    $block::<1, false>(at, micros, i, 0);
                    i += $lanes;
                }
                if i < n {
                    $block::<1, true>(at, micros, i, n - i);
                }
            }
        }
    };
}

chain!(
    on_avx512_f32, block_avx512_f32, "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma", f32, __m512, 16, 16, 4,
    load: _mm512_loadu_ps, store: _mm512_storeu_ps, stream: _mm512_stream_ps, splat: _mm512_set1_ps, zero: _mm512_setzero_ps,
    part: |p, n| _mm512_maskz_loadu_ps(((1u32 << n) - 1) as __mmask16, p),
    put: |p, n, x| _mm512_mask_storeu_ps(p, ((1u32 << n) - 1) as __mmask16, x),
    _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_div_ps _mm512_sqrt_ps _mm512_fmadd_ps _mm512_min_ps _mm512_max_ps,
    xor: |a, b| _mm512_xor_ps(a, b), keep: |a, b| _mm512_andnot_ps(a, b),
    nan_first: |a, m| _mm512_mask_mov_ps(m, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a),
    positive: |x| _mm512_maskz_mov_ps(!_mm512_cmp_ps_mask::<_CMP_LE_OQ>(x, _mm512_setzero_ps()), x)
);
chain!(
    on_avx512_f64, block_avx512_f64, "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma", f64, __m512d, 8, 16, 4,
    load: _mm512_loadu_pd, store: _mm512_storeu_pd, stream: _mm512_stream_pd, splat: _mm512_set1_pd, zero: _mm512_setzero_pd,
    part: |p, n| _mm512_maskz_loadu_pd(((1u32 << n) - 1) as __mmask8, p),
    put: |p, n, x| _mm512_mask_storeu_pd(p, ((1u32 << n) - 1) as __mmask8, x),
    _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_sqrt_pd _mm512_fmadd_pd _mm512_min_pd _mm512_max_pd,
    xor: |a, b| _mm512_xor_pd(a, b), keep: |a, b| _mm512_andnot_pd(a, b),
    nan_first: |a, m| _mm512_mask_mov_pd(m, _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, a), a),
    positive: |x| _mm512_maskz_mov_pd(!_mm512_cmp_pd_mask::<_CMP_LE_OQ>(x, _mm512_setzero_pd()), x)
);

/// All ones in the first `n` of eight lanes.
const LIVE_32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
const LIVE_64: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

#[target_feature(enable = "avx2")]
#[inline]
fn live_32(n: usize) -> __m256i {
    // SAFETY: eight of sixteen from `8 - n` on, `n` at most eight.
    unsafe { _mm256_loadu_si256(LIVE_32.as_ptr().add(8 - n.min(8)).cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn live_64(n: usize) -> __m256i {
    // SAFETY: four of eight from `4 - n` on, `n` at most four.
    unsafe { _mm256_loadu_si256(LIVE_64.as_ptr().add(4 - n.min(4)).cast()) }
}

chain!(
    on_avx2_f32, block_avx2_f32, "avx2,fma", f32, __m256, 8, 8, 4,
    load: _mm256_loadu_ps, store: _mm256_storeu_ps, stream: _mm256_stream_ps, splat: _mm256_set1_ps, zero: _mm256_setzero_ps,
    part: |p, n| _mm256_maskload_ps(p, live_32(n)), put: |p, n, x| _mm256_maskstore_ps(p, live_32(n), x),
    _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_div_ps _mm256_sqrt_ps _mm256_fmadd_ps _mm256_min_ps _mm256_max_ps,
    xor: |a, b| _mm256_xor_ps(a, b), keep: |a, b| _mm256_andnot_ps(a, b),
    nan_first: |a, m| _mm256_blendv_ps(m, a, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a)),
    positive: |x| _mm256_andnot_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(x, _mm256_setzero_ps()), x)
);
chain!(
    on_avx2_f64, block_avx2_f64, "avx2,fma", f64, __m256d, 4, 8, 4,
    load: _mm256_loadu_pd, store: _mm256_storeu_pd, stream: _mm256_stream_pd, splat: _mm256_set1_pd, zero: _mm256_setzero_pd,
    part: |p, n| _mm256_maskload_pd(p, live_64(n)), put: |p, n, x| _mm256_maskstore_pd(p, live_64(n), x),
    _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_sqrt_pd _mm256_fmadd_pd _mm256_min_pd _mm256_max_pd,
    xor: |a, b| _mm256_xor_pd(a, b), keep: |a, b| _mm256_andnot_pd(a, b),
    nan_first: |a, m| _mm256_blendv_pd(m, a, _mm256_cmp_pd::<_CMP_UNORD_Q>(a, a)),
    positive: |x| _mm256_andnot_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(x, _mm256_setzero_pd()), x)
);

macro_rules! entry {
    ($($name:ident $on:ident;)+) => {$(
        pub unsafe fn $name(at: *const *mut u8, micros: &[Micro], n: usize) {
            // SAFETY: the caller vouches for the instruction set and the places.
            unsafe { $on(at, micros, n) }
        }
    )+};
}
entry! {
    avx512_f32 on_avx512_f32;
    avx512_f64 on_avx512_f64;
    avx2_f32 on_avx2_f32;
    avx2_f64 on_avx2_f64;
}
