//! What a run will cost: counted work at learned rates, with intervals.
//!
//! ```
//! use steersman_core::cost::{Belief, Fit, Stats, Terms};
//!
//! // A kernel that says: 50 ns to start, 1 ns an element.
//! let work = |n: f64| Terms::launch(50e-9).and(n * 1e-9);
//! let mut stats = Stats::default();
//! for n in [10.0, 1e3, 1e5] {
//!     stats.add(&work(n), 80e-9 + n * 0.4e-9, 1.0); // what was measured
//! }
//! let p = Fit::new(&stats, &Belief::prior()).predict(&work(1e4));
//! assert!((p.seconds / 4.08e-6 - 1.0).abs() < 0.05);
//! ```

mod coordinates;
mod estimate;
mod finite;
mod history;
mod key;
mod knowledge;
mod local;
mod machine;
mod mix;
mod model;
mod regress;
mod terms;

pub use coordinates::coordinates;
pub use estimate::{Estimate, Evidence, Source, normal_cdf};
pub use history::History;
pub(crate) use history::REMEMBERED;
pub use key::{CellKey, Subject, Variant};
pub use knowledge::Knowledge;
pub use local::{Coordinates, Corners, Correction, Local};
pub use machine::{Level, Machine, Rates, Rest, Traffic};
pub use mix::Mix;
pub use model::{Model, Taken};
pub use regress::{Belief, Fit, Prediction, Stats, t90};
pub use terms::{MAX_TERMS, Terms};
