// x^y = 2^(y log2 x), the logarithm as a sum of two floats and the product in exact parts: a relative error
// of one rounding in the exponent alone would be up to 88 units in the last place.
fn top_bits(x: f32) -> f32 { return from_bits(bitcast<u32>(x) & 0xfffff000u); }
struct Sum { high: f32, low: f32 }
fn log2_pair(x: f32) -> Sum {
    let split = log_split(x);
    let f = split.m - 1.0;
    // s = f / (2 + f) in two parts; log2 m = (2 / ln 2) (s + s³/3 + ..).
    let d = 1.0 + split.m;
    let s0 = f / d;
    let s = from_bits(bitcast<u32>(s0) & 0xffffe000u);
    let mh = top_bits(split.m);
    let ml = keep(split.m - mh);
    let r = keep(keep(f - s) - s * mh) - s * ml;
    let s_low = r / d;
    let z = s0 * s0;
    // The series beyond the first term: s³ (2/ln 2) (1/3 + z/5 + z²/7 + ..).
    let p = fma(z, fma(z, fma(z, fma(z, 0.26230812, 0.32059910), 0.41219867), 0.57707801), 0.96179670);
    // 2 / ln 2 in two parts, the first of 11 bits.
    let t = keep(s * 2.884765625);
    let t_high = floor(t * 16384.0) * 0.00006103515625;
    let low = keep(t - t_high) + fma(s, 0.00062445657, fma(s_low, 2.8853901, s0 * z * p));
    return Sum(split.e + t_high, low);
}
fn pow_positive(x: f32, y: f32) -> f32 {
    let l = log2_pair(x);
    let about = y * (l.high + l.low);
    if (about > 130.0) { return inf(); }
    if (about < -152.0) { return 0.0; }
    let n = floor(about + 0.5);
    let yh = top_bits(y);
    let yl = keep(y - yh);
    let lh = top_bits(l.high);
    let ll = keep(l.high - lh);
    let rest = (keep(yh * lh - n) + keep(keep(yh * ll) + yl * lh)) + keep(keep(yl * ll) + y * l.low);
    // 2^rest for |rest| about a half.
    let e = 1.0 + expm1_reduced(rest * 0.6931471805599453);
    let k = i32(n);
    let half = k >> 1u;
    return e * exp2_int(half) * exp2_int(k - half);
}
fn f_pow(x: f32, y: f32) -> f32 {
    let one = bitcast<u32>(x) == 0x3f800000u;
    if (one || !f_nonzero(y)) { return 1.0; }
    if (is_nan(x) || is_nan(y)) { return nan(); }
    let a = magnitude(x);
    let ay = magnitude(y);
    // Integers from 2^24 on are all even.
    let whole = ay >= 16777216.0 || f_eq(trunc(y), y);
    let odd = whole && ay < 16777216.0 && (i32(ay) & 1) == 1;
    var r = 0.0;
    if (is_inf(y)) {
        if (bitcast<u32>(a) == 0x3f800000u) { return 1.0; }
        r = select(0.0, inf(), (a > 1.0) == !below_zero(y));
    } else if (!f_nonzero(x)) {
        r = select(0.0, inf(), below_zero(y));
    } else if (is_inf(x)) {
        r = select(inf(), 0.0, below_zero(y));
    } else if (below_zero(x) && !whole) {
        return nan();
    } else {
        r = pow_positive(a, y);
    }
    return select(r, negated(r), below_zero(x) && odd);
}
