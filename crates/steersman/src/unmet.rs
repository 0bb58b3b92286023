//! What the knobs ask for that is not there: it is passed over, and somebody should hear of it.

use crate::runtime::Runtime;
use std::error::Error;
use steersman_core::glob;
use steersman_cpu::matmul::blas::Blas;

impl Runtime {
    /// What the knobs ask for in vain, in words: a BLAS library that cannot be loaded, kernels to leave out that do not
    /// exist. Devices that are still looked for may bring some of the latter.
    pub fn unmet(&self) -> Vec<String> {
        let knobs = self.knobs();
        let mut unmet = Vec::new();
        if let Some(path) = &knobs.blas_path
            && let Err(why) = Blas::load(path)
        {
            // What the system's loader says stands behind.
            let why = why.source().map_or_else(|| why.to_string(), |behind| behind.to_string());
            let path = path.display();
            unmet.push(format!("the BLAS library that blas.path={path} names cannot be used: {why}"));
        }
        for pattern in &knobs.disable {
            if !self.engine().registry().iter().any(|(_, k)| glob(pattern, k.name())) {
                unmet.push(format!("disable={pattern} matches no kernel here; `steer explain` lists them"));
            }
        }
        unmet
    }
}
