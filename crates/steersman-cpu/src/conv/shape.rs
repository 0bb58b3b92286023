//! The sizes and strides of one convolution.

use std::ops::Range;
use steersman_core::{DType, Op, Refusal, Workload};

/// What a convolution is made of. Strides in elements: image, channel or filter, row, column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub images: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    pub filters: usize,
    /// Rows and columns of a filter.
    pub taps: (usize, usize),
    pub out_height: usize,
    pub out_width: usize,
    pub stride: usize,
    pub pad: usize,
    pub x: [isize; 4],
    pub f: [isize; 4],
    pub y: [isize; 4],
}

impl Shape {
    /// Of this workload; `None` if it is no convolution.
    pub fn of(w: &Workload) -> Option<Shape> {
        let Op::Conv2d { stride, pad } = w.op() else { return None };
        let [x, f] = w.inputs() else { return None };
        let y = w.output();
        let (Ok(xs), Ok(fs), Ok(ys)) =
            (x.strides[..].try_into(), f.strides[..].try_into(), y.strides[..].try_into())
        else {
            return None;
        };
        Some(Shape {
            images: x.dims[0],
            channels: x.dims[1],
            height: x.dims[2],
            width: x.dims[3],
            filters: f.dims[0],
            taps: (f.dims[2], f.dims[3]),
            out_height: y.dims[2],
            out_width: y.dims[3],
            stride: stride.into(),
            pad: pad.into(),
            x: xs,
            f: fs,
            y: ys,
        })
    }

    /// Products summed into one element of the result.
    pub fn depth(&self) -> usize {
        self.channels * self.taps.0 * self.taps.1
    }

    /// The image row that output row `row` reads with tap `tap`, unless it is part of the border.
    #[inline(always)]
    pub fn row(&self, row: usize, tap: usize) -> Option<usize> {
        (row * self.stride + tap).checked_sub(self.pad).filter(|r| *r < self.height)
    }

    /// The output columns that read inside the image with tap `tap`.
    #[inline(always)]
    pub fn columns(&self, tap: usize) -> Range<usize> {
        let first = self.pad.saturating_sub(tap).div_ceil(self.stride).min(self.out_width);
        let end = (self.width + self.pad).saturating_sub(tap).div_ceil(self.stride).min(self.out_width);
        first..end.max(first)
    }
}

/// The shape, if it is a convolution of f32 or f64 whose result is laid out plainly.
pub(super) fn plain(w: &Workload) -> Result<Shape, Refusal> {
    let shape = Shape::of(w).ok_or(Refusal::new("only convolves"))?;
    if !matches!(w.dtype(), DType::F32 | DType::F64) {
        return Err(Refusal::new(format!("does not convolve {}", w.dtype())));
    }
    if !w.output().is_contiguous() {
        return Err(Refusal::new("the result must be contiguous"));
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_rows_are_those_inside_the_image() {
        for text in [
            "conv2d f32 1x1x5x7 1x1x3x3 pad=1",
            "conv2d f32 1x1x5x7 1x1x3x5 stride=2 pad=3",
            "conv2d f32 1x1x4x4 1x1x4x4",
            "conv2d f32 1x1x2x1 1x1x1x3 stride=3 pad=4",
        ] {
            let s = Shape::of(&text.parse().unwrap()).unwrap();
            for tap in 0..s.taps.1 {
                let inside = |c: usize| {
                    let at = (c * s.stride + tap) as isize - s.pad as isize;
                    at >= 0 && at < s.width as isize
                };
                let want: Vec<usize> = (0..s.out_width).filter(|&c| inside(c)).collect();
                assert_eq!(s.columns(tap).collect::<Vec<_>>(), want, "{text} tap {tap}");
            }
            for tap in 0..s.taps.0 {
                for row in 0..s.out_height {
                    let at = (row * s.stride + tap) as isize - s.pad as isize;
                    let want = (at >= 0 && at < s.height as isize).then_some(at as usize);
                    assert_eq!(s.row(row, tap), want, "{text} row {row} tap {tap}");
                }
            }
        }
    }
}
