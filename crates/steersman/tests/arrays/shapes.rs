use crate::runtime;
use proptest::prelude::*;
use steersman::{Array, Runtime, Slice};

/// Plain nested indexing, to compare views with.
#[derive(Clone, Debug)]
struct Naive {
    dims: Vec<usize>,
    data: Vec<i32>,
}

impl Naive {
    /// Elements of a new shape, each from the index that `from` gives.
    fn gather(&self, dims: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Naive {
        let n: usize = dims.iter().product();
        let data = (0..n).map(|flat| self.at(&from(&unravel(flat, &dims)))).collect();
        Naive { dims, data }
    }

    fn at(&self, index: &[usize]) -> i32 {
        let flat = index.iter().zip(&self.dims).fold(0, |f, (&i, &d)| f * d + i);
        self.data[flat]
    }
}

fn unravel(mut flat: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (i, &d) in index.iter_mut().zip(dims).rev() {
        *i = flat % d.max(1);
        flat /= d.max(1);
    }
    index
}

#[derive(Clone, Debug)]
enum Change {
    Flatten,
    Split,
    Permute(u64),
    Slice(usize, isize, isize, isize),
    Flip(usize),
    Index(usize),
    Expand(usize),
    Broadcast(usize),
    Concat(usize),
    Stack(usize),
    Eval,
    AddOne,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Flatten),
        Just(Change::Split),
        any::<u64>().prop_map(Change::Permute),
        (0..4usize, -5..5isize, -5..5isize, prop_oneof![-3..0isize, 1..4isize])
            .prop_map(|(a, b, c, d)| Change::Slice(a, b, c, d)),
        (0..4usize).prop_map(Change::Flip),
        (0..4usize).prop_map(Change::Index),
        (0..4usize).prop_map(Change::Expand),
        (0..4usize).prop_map(Change::Broadcast),
        (0..4usize).prop_map(Change::Concat),
        (0..4usize).prop_map(Change::Stack),
        Just(Change::Eval),
        Just(Change::AddOne),
    ]
}

fn apply(rt: &Runtime, a: Array, n: Naive, change: &Change) -> (Array, Naive) {
    let rank = n.dims.len();
    if n.data.len() > 20_000 {
        return (a, n);
    }
    match change {
        Change::Flatten => (a.flatten_or_same(), Naive { dims: vec![n.data.len()], data: n.data }),
        Change::Split if n.data.len().is_multiple_of(2) && !n.data.is_empty() => {
            let dims = vec![2, n.data.len() / 2];
            (a.reshape(&dims), Naive { dims, data: n.data })
        }
        Change::Permute(seed) if rank > 0 => {
            let mut order: Vec<usize> = (0..rank).collect();
            let mut s = *seed;
            for i in (1..rank).rev() {
                order.swap(i, s as usize % (i + 1));
                s /= 7;
            }
            let dims: Vec<usize> = order.iter().map(|&a| n.dims[a]).collect();
            let from = |i: &[usize]| {
                let mut at = vec![0; rank];
                order.iter().zip(i).for_each(|(&a, &x)| at[a] = x);
                at
            };
            (a.permute(&order), n.gather(dims, from))
        }
        Change::Slice(axis, start, stop, step) if rank > 0 => {
            let axis = axis % rank;
            let mut slices = vec![Slice::ALL; rank];
            slices[axis] = Slice::new(Some(*start), Some(*stop), *step);
            // Python's own rules, element by element.
            let d = n.dims[axis] as isize;
            let wrap = |i: isize| if i < 0 { i + d } else { i };
            let (mut picked, mut i) = (Vec::new(), wrap(*start));
            i = if *step > 0 { i.clamp(0, d) } else { i.clamp(-1, d - 1) };
            let end = if *step > 0 { wrap(*stop).clamp(0, d) } else { wrap(*stop).clamp(-1, d - 1) };
            while if *step > 0 { i < end } else { i > end } {
                picked.push(i as usize);
                i += step;
            }
            let mut dims = n.dims.clone();
            dims[axis] = picked.len();
            let from = |i: &[usize]| {
                let mut at = i.to_vec();
                at[axis] = picked[i[axis]];
                at
            };
            (a.slice(&slices[..]), n.gather(dims, from))
        }
        Change::Flip(axis) if rank > 0 => {
            let axis = axis % rank;
            let d = n.dims[axis];
            let from = |i: &[usize]| {
                let mut at = i.to_vec();
                at[axis] = d - 1 - at[axis];
                at
            };
            (a.flip(axis), n.gather(n.dims.clone(), from))
        }
        Change::Index(axis) if rank > 0 && n.dims[axis % rank] > 0 => {
            let axis = axis % rank;
            let last = n.dims[axis] - 1;
            let mut dims = n.dims.clone();
            dims.remove(axis);
            let from = |i: &[usize]| {
                let mut at = i.to_vec();
                at.insert(axis, last);
                at
            };
            (a.index(axis, -1), n.gather(dims, from))
        }
        Change::Expand(axis) if rank < 6 => {
            let axis = axis % (rank + 1);
            let mut dims = n.dims.clone();
            dims.insert(axis, 1);
            (a.expand(axis), Naive { dims, data: n.data })
        }
        Change::Broadcast(k) if rank < 6 => {
            let mut dims = n.dims.clone();
            if let Some(one) = dims.iter().position(|&d| d == 1) {
                dims[one] = k + 2;
            }
            dims.insert(0, 2);
            let from = |i: &[usize]| i[1..].iter().zip(&n.dims).map(|(&i, &d)| i.min(d - 1)).collect();
            (a.broadcast_to(&dims), n.gather(dims, from))
        }
        Change::Concat(axis) if rank > 0 => {
            let axis = axis % rank;
            let d = n.dims[axis];
            let mut dims = n.dims.clone();
            dims[axis] *= 2;
            let from = |i: &[usize]| {
                let mut at = i.to_vec();
                at[axis] %= d;
                at
            };
            (rt.concat(&[&a, &a], axis), n.gather(dims, from))
        }
        Change::Stack(axis) if rank < 6 => {
            let axis = axis % (rank + 1);
            let mut dims = n.dims.clone();
            dims.insert(axis, 3);
            let from = |i: &[usize]| {
                let mut at = i.to_vec();
                at.remove(axis);
                at
            };
            (rt.stack(&[&a, &a, &a], axis), n.gather(dims, from))
        }
        Change::Eval => {
            a.eval().unwrap();
            (a, n)
        }
        Change::AddOne => {
            let data = n.data.iter().map(|x| x + 1).collect();
            (a + 1, Naive { data, ..n })
        }
        _ => (a, n),
    }
}

trait FlattenOrSame {
    fn flatten_or_same(&self) -> Array;
}
impl FlattenOrSame for Array {
    /// -1 has no answer for zero elements.
    fn flatten_or_same(&self) -> Array {
        if self.is_empty() { self.reshape([0]) } else { self.flatten() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn shape_ops_agree_with_plain_indexing(
        dims in prop::collection::vec(1..5usize, 0..4),
        changes in prop::collection::vec(change(), 1..8),
    ) {
        thread_local!(static RT: Runtime = runtime());
        let rt = RT.with(|rt| rt.clone());
        let data: Vec<i32> = (0..dims.iter().product::<usize>() as i32).collect();
        let mut naive = Naive { dims: dims.clone(), data: data.clone() };
        let mut array = rt.from_vec(data, &dims).unwrap();
        for c in &changes {
            (array, naive) = apply(&rt, array, naive, c);
            prop_assert_eq!(array.check(), Ok(()));
        }
        prop_assert_eq!(array.shape(), &naive.dims[..]);
        prop_assert_eq!(array.to_vec::<i32>().unwrap(), naive.data);
    }
}

#[test]
fn slices_are_written_as_ranges() {
    let rt = runtime();
    let a = rt.from_vec((0..12).collect::<Vec<i32>>(), [3, 4]).unwrap();
    let read = |a: Array| a.to_vec::<i32>().unwrap();
    assert_eq!(read(a.slice((1..3, ..2))), [4, 5, 8, 9]);
    assert_eq!(read(a.slice((-1.., Slice::ALL.step(-2)))), [11, 9]);
    assert_eq!(read(a.slice((.., 1..2)).squeeze(1)), [1, 5, 9]);
    assert_eq!(read(a.t().slice((0..1,))), [0, 4, 8]);
    assert_eq!(a.slice((5..9,)).shape(), [0, 4]);
    assert_eq!(read(a.reshape([2, -1]).index(0, 0)), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn empty_arrays_are_arrays() {
    let rt = runtime();
    let none = rt.from_vec(Vec::<f32>::new(), [0, 3]).unwrap();
    let ones = rt.from_vec(vec![1.0f32; 3], [3]).unwrap();
    assert!((&none + &ones).exp().to_vec::<f32>().unwrap().is_empty());
    assert_eq!((&none + &ones).sum(0).to_vec::<f32>().unwrap(), [0.0; 3]);
    assert_eq!(none.sum(..).item::<f32>().unwrap(), 0.0);
    assert_eq!(none.prod(..).item::<f32>().unwrap(), 1.0);
    assert_eq!(none.max(1).shape(), [0]);
    assert!(none.max(1).to_vec::<f32>().unwrap().is_empty());
    assert_eq!(rt.concat(&[&none, &ones.expand(0)], 0).to_vec::<f32>().unwrap(), [1.0; 3]);
    assert_eq!(none.t().matmul(&none).to_vec::<f32>().unwrap(), [0.0; 9]);
    assert_eq!(none.reshape([3, 0]).to_string(), "[]");
}
