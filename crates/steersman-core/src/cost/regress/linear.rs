//! The arithmetic of eight terms.

use crate::cost::terms::MAX_TERMS;

pub(super) type Matrix = [[f64; MAX_TERMS]; MAX_TERMS];
pub(super) type Vector = [f64; MAX_TERMS];

/// The sum of eight, in pairs: no addition waits for more than two others.
#[inline(always)]
pub(super) fn sum(v: &Vector) -> f64 {
    ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
}

#[inline(always)]
pub(super) fn dot(a: &Vector, b: &Vector) -> f64 {
    sum(&std::array::from_fn(|i| a[i] * b[i]))
}

/// Inverse of a symmetric positive definite matrix by Cholesky. The added precision keeps it definite, and
/// where rounding eats that, the last digits of the diagonal do.
pub(super) fn invert(a: Matrix) -> Matrix {
    let mut l = [[0.0; MAX_TERMS]; MAX_TERMS];
    for i in 0..MAX_TERMS {
        for j in 0..=i {
            let sum = a[i][j] - (0..j).map(|k| l[i][k] * l[j][k]).sum::<f64>();
            l[i][j] = if i == j { sum.max(a[i][i] * 1e-13).sqrt() } else { sum / l[j][j] };
        }
    }
    let mut out = [[0.0; MAX_TERMS]; MAX_TERMS];
    // The inverse is symmetric: its columns are solved for and stored as rows.
    for (c, row) in out.iter_mut().enumerate() {
        let mut y = [0.0; MAX_TERMS];
        for i in 0..MAX_TERMS {
            let b = f64::from(i == c);
            y[i] = (b - (0..i).map(|k| l[i][k] * y[k]).sum::<f64>()) / l[i][i];
        }
        for i in (0..MAX_TERMS).rev() {
            row[i] = (y[i] - (i + 1..MAX_TERMS).map(|k| l[k][i] * row[k]).sum::<f64>()) / l[i][i];
        }
    }
    out
}

pub(super) fn multiply(m: &Matrix, v: &Vector) -> Vector {
    std::array::from_fn(|i| (0..MAX_TERMS).map(|j| m[i][j] * v[j]).sum())
}

/// Half-width, in standard scales, of the central 90% of a Student-t.
pub fn t90(dof: f64) -> f64 {
    // Cornish-Fisher expansion around the normal 95% point; within 2% from 4 degrees up.
    const Z: f64 = 1.644_853_626_951;
    let n = dof.max(1.0);
    let z3 = Z.powi(3);
    let z5 = Z.powi(5);
    Z + (z3 + Z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * n * n)
}
