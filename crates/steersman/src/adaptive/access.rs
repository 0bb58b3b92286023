//! How variants take their argument: changing it in place, or only reading it.

/// Variants change their argument: `Fn(&mut A) -> R`.
pub enum InPlace {}

/// Variants only read their argument: `Fn(&A) -> R`.
pub enum Reading {}

/// Undoes what a failed variant did to the argument.
pub type Restore<A> = Box<dyn FnOnce(&mut A)>;

/// How variants take their argument; [`InPlace`] and [`Reading`] are all there are.
pub trait Access<A: ?Sized + 'static>: sealed::Sealed {
    /// The argument as a variant gets it.
    type Arg<'a>;

    /// The argument, to look at.
    fn look<'b>(arg: &'b Self::Arg<'_>) -> &'b A;

    /// The argument once more, for another variant.
    fn again<'b>(arg: &'b mut Self::Arg<'_>) -> Self::Arg<'b>;

    /// Brings the argument back to what it was. False if it cannot be.
    fn restore(arg: &mut Self::Arg<'_>, kept: Option<Restore<A>>) -> bool;
}

impl<A: ?Sized + 'static> Access<A> for InPlace {
    type Arg<'a> = &'a mut A;

    fn look<'b>(arg: &'b &mut A) -> &'b A {
        arg
    }

    fn again<'b>(arg: &'b mut &mut A) -> &'b mut A {
        arg
    }

    fn restore(arg: &mut &mut A, kept: Option<Restore<A>>) -> bool {
        kept.map(|restore| restore(arg)).is_some()
    }
}

impl<A: ?Sized + 'static> Access<A> for Reading {
    type Arg<'a> = &'a A;

    fn look<'b>(arg: &'b &A) -> &'b A {
        arg
    }

    fn again<'b>(arg: &'b mut &A) -> &'b A {
        arg
    }

    fn restore(_: &mut &A, _: Option<Restore<A>>) -> bool {
        true
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::InPlace {}
    impl Sealed for super::Reading {}
}
