//! Computed elements: memory shared by all arrays that see it, and how one of them looks at it.

use super::Array;
use crate::error::Error;
use crate::plan::{Compiled, Recipe};
use crate::runtime::{Carrier, Piece, Trouble};
use smallvec::SmallVec;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};
use steersman_core::{Address, Place, Strides};
use steersman_cpu::memory::Block;

/// Memory that holds elements and is never written again once an array has it.
pub(crate) struct Buffer {
    main: Main,
    bytes: usize,
    /// The same bytes at other places, made when they were first needed there.
    copies: OnceLock<Box<Copies>>,
    /// How to make them again, if they were made away from the host: a graph, and which of its nodes they are of.
    recipe: OnceLock<(Arc<Recipe>, u32)>,
}

/// Copies of a buffer. Who carries one holds `carrying` meanwhile, so that it is carried once; who only asks where
/// the elements are does not wait for that.
#[derive(Default)]
struct Copies {
    list: Mutex<SmallVec<[Arc<Piece>; 1]>>,
    carrying: Mutex<()>,
}

enum Main {
    /// From the runtime's pool.
    Pool(Block),
    /// A caller's vector, and where its elements start.
    Owned { start: usize, _owner: Box<dyn Any + Send + Sync> },
    /// Of a device.
    Device(Piece),
    /// No elements.
    Empty,
}

/// Where an empty buffer's elements would start: aligned, and never followed.
const NOWHERE: usize = 64;

impl Buffer {
    fn new(main: Main, bytes: usize) -> Buffer {
        Buffer { main, bytes, copies: OnceLock::new(), recipe: OnceLock::new() }
    }

    pub fn pool(block: Block) -> Buffer {
        let bytes = block.len();
        Buffer::new(Main::Pool(block), bytes)
    }

    pub fn owned<T: Send + Sync + 'static>(data: Vec<T>) -> Buffer {
        let (start, bytes) = (data.as_ptr() as usize, std::mem::size_of_val(&data[..]));
        Buffer::new(Main::Owned { start, _owner: Box::new(data) }, bytes)
    }

    pub fn empty() -> Buffer {
        Buffer::new(Main::Empty, 0)
    }

    /// Memory of a plan, of so many bytes.
    pub fn piece(piece: Piece, bytes: usize) -> Buffer {
        match piece {
            Piece::Host(block) => Buffer::new(Main::Pool(block), bytes),
            device => Buffer::new(Main::Device(device), bytes),
        }
    }

    /// Where the elements start, at the place they were made.
    pub fn start(&self) -> usize {
        match &self.main {
            Main::Pool(block) => block.as_ptr() as usize,
            Main::Owned { start, .. } => *start,
            Main::Device(piece) => piece.start().0 as usize,
            Main::Empty => NOWHERE,
        }
    }

    /// Where they were made.
    #[inline]
    pub fn place(&self) -> Place {
        match &self.main {
            Main::Device(piece) => piece.place(),
            _ => Place::Host,
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Every place they are at now and where they start there, where they were made first.
    pub fn seats(&self) -> SmallVec<[(Place, Address); 2]> {
        let mut all: SmallVec<[(Place, Address); 2]> = smallvec::smallvec![self.seat()];
        if let Some(copies) = self.copies.get() {
            all.extend(lock(&copies.list).iter().map(|p| (p.place(), p.start())));
        }
        all
    }

    /// Every place they are at now, where they were made first.
    pub fn places(&self) -> SmallVec<[Place; 2]> {
        self.seats().into_iter().map(|(place, _)| place).collect()
    }

    /// Where they were made, and where they start there.
    fn seat(&self) -> (Place, Address) {
        (self.place(), Address(self.start() as u64))
    }

    /// Whether the host made them and nobody else has them: what the common case is checked for.
    #[inline]
    pub fn is_at_home(&self) -> bool {
        self.place() == Place::Host && self.copies.get().is_none()
    }

    /// The copy at a place where they were not made.
    pub fn copy_at(&self, place: Place) -> Option<Arc<Piece>> {
        lock(&self.copies.get()?.list).iter().find(|p| p.place() == place).cloned()
    }

    /// Makes sure of a copy at `place`, which they were not made at; says whether it was moved just now.
    pub fn bring(
        self: &Arc<Buffer>,
        carrier: &Carrier,
        place: Place,
        observed: bool,
    ) -> Result<(Arc<Piece>, bool), Trouble> {
        let copies = self.copies.get_or_init(Box::default);
        let _carrying = lock(&copies.carrying);
        if let Some(copy) = self.copy_at(place) {
            return Ok((copy, false));
        }
        let piece = carrier.room(place, self.bytes)?;
        // From home if it is there: the way from a device may be a detour, and the device may be lost.
        let source = self.copy_at(Place::Host);
        let from = source.as_ref();
        let from = from.map_or(self.seat(), |p| (p.place(), p.start()));
        // SAFETY: both are as long as the buffer; the new one is nobody else's, the old one is held here.
        let carry = || unsafe { carrier.carry(from, (place, piece.start()), self.bytes, observed) };
        catch_unwind(AssertUnwindSafe(carry))
            .unwrap_or_else(|panic| {
                let device = if place == Place::Host { from.0 } else { place };
                Err(Trouble::Away(device, format!("panicked: {}", crate::panic_text(&*panic))))
            })
            .map_err(|trouble| match (trouble, carrier.unwritten(from)) {
                (Trouble::Away(..), Some(why)) => Trouble::Unwritten(from.0, why),
                (trouble, _) => trouble,
            })?;
        let piece = Arc::new(piece);
        lock(&copies.list).push(piece.clone());
        if place != Place::Host {
            carrier.note_copy(self);
        }
        Ok((piece, true))
    }

    /// Notes how to make the elements again.
    pub fn remember(&self, recipe: Arc<Recipe>, node: u32) {
        // They were made in one way.
        let _ = self.recipe.set((recipe, node));
    }

    pub fn recipe(&self) -> Option<&(Arc<Recipe>, u32)> {
        self.recipe.get()
    }

    /// Takes the elements of `array`, which is computed for it, as a copy in host memory. If the device that should have
    /// made them is still there, it gets them as well.
    pub fn restore(&self, carrier: &Carrier, array: &Array) -> Result<(), Error> {
        let from = array.at_home()?;
        debug_assert_eq!(array.len() * array.dtype().size(), self.bytes, "another value than it was");
        let memory = |t: Trouble| Error::Memory { workload: format!("{array:?}"), why: t.why().into() };
        let piece = carrier.room(Place::Host, self.bytes).map_err(memory)?;
        let to = (Place::Host, piece.start());
        // SAFETY: both are as long as the buffer; the new one is nobody else's, the other is held here.
        unsafe { carrier.carry((Place::Host, Address(from.start as u64)), to, self.bytes, false) }
            .map_err(memory)?;
        let copies = self.copies.get_or_init(Box::default);
        let _carrying = lock(&copies.carrying);
        // Another thread may have been quicker; its elements are as good.
        if self.copy_at(Place::Host).is_none() {
            lock(&copies.list).push(Arc::new(piece));
        }
        if carrier.unwritten(self.seat()).is_some() {
            // SAFETY: as above; what is there is nobody's elements.
            unsafe { carrier.carry(to, self.seat(), self.bytes, false) }.map_err(memory)?;
        }
        Ok(())
    }

    /// Lets the copy at `place` go, if there is one; returns the bytes that were freed. Whoever works with it
    /// holds it until then.
    pub fn drop_copy(&self, place: Place) -> usize {
        let Some(copies) = self.copies.get() else { return 0 };
        let mut copies = lock(&copies.list);
        let before = copies.len();
        copies.retain(|p| p.place() != place);
        (before - copies.len()) * self.bytes
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// How one array looks at a buffer.
pub(crate) struct Value {
    pub buffer: Arc<Buffer>,
    /// Bytes from the buffer's start to the first element.
    pub offset: usize,
    pub strides: Strides,
    /// What computed it; none for elements that were given.
    pub plan: Option<Arc<Compiled>>,
}

impl Value {
    /// Where the first element is.
    pub fn address(&self) -> usize {
        self.buffer.start() + self.offset
    }
}

/// log2 of an address's alignment, at most a cache line.
pub(crate) fn alignment(address: usize) -> u8 {
    address.trailing_zeros().min(6) as u8
}

/// Row-major strides. Dimensions are known to be addressable.
pub(crate) fn contiguous(dims: &[usize]) -> Strides {
    let mut strides: Strides = smallvec::SmallVec::from_elem(0, dims.len());
    let mut step = 1isize;
    for (s, &d) in strides.iter_mut().zip(dims).rev() {
        *s = step;
        step = step.saturating_mul(d.max(1) as isize);
    }
    strides
}

/// Whether elements lie one after another in row-major order.
pub(crate) fn is_contiguous(dims: &[usize], strides: &[isize]) -> bool {
    if dims.contains(&0) {
        return true;
    }
    let mut step = 1isize;
    for (&d, &s) in dims.iter().zip(strides).rev() {
        if d > 1 && s != step {
            return false;
        }
        step = step.saturating_mul(d as isize);
    }
    true
}
