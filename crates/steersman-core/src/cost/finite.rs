//! Numbers that can be written down: JSON has no others, and what is not finite was never measured.

use super::machine::Machine;

impl Machine {
    /// The same without what is no number: not measured.
    pub fn finite(mut self) -> Machine {
        for level in &mut self.levels {
            // By number of threads: 0 says nothing of that number.
            let lists = [&mut level.copy, &mut level.read, &mut level.stream];
            lists.into_iter().flatten().filter(|rate| !rate.is_finite()).for_each(|rate| *rate = 0.0);
        }
        self.peak_f32.retain(|_, rate| rate.is_finite());
        self.rates.retain(|_, rate| rate.is_finite());
        let rest = [&mut self.rest.handoff, &mut self.rest.pulse];
        for value in
            rest.into_iter().chain([&mut self.handoff, &mut self.tick, &mut self.met, &mut self.setup])
        {
            *value = value.filter(|v| v.is_finite());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Level, Rest};

    #[test]
    fn what_is_no_number_does_not_make_the_rest_unreadable() {
        let level = Level {
            name: "L1".into(),
            capacity: Some(1),
            private: true,
            copy: vec![1e9, f64::NAN],
            read: vec![f64::INFINITY],
            stream: vec![],
        };
        let bad = Machine {
            levels: vec![level.clone()],
            peak_f32: [("a".to_string(), f64::NAN), ("b".to_string(), 2.0)].into(),
            handoff: Some(f64::INFINITY),
            rest: Rest { handoff: Some(f64::NAN), pulse: Some(3.0) },
            rates: [("a".to_string(), f64::NEG_INFINITY), ("b".to_string(), 4.0)].into_iter().collect(),
            tick: Some(f64::NAN),
            met: Some(f64::NAN),
            setup: Some(f64::NAN),
            ..Machine::default()
        };
        let text = |m: &Machine| serde_json::to_string(m).unwrap();
        assert!(serde_json::from_str::<Machine>(&text(&bad)).is_err(), "so it would be lost");
        let good = Machine {
            levels: vec![Level { copy: vec![1e9, 0.0], read: vec![0.0], ..level }],
            peak_f32: [("b".to_string(), 2.0)].into(),
            rest: Rest { handoff: None, pulse: Some(3.0) },
            rates: [("b".to_string(), 4.0)].into_iter().collect(),
            ..Machine::default()
        };
        assert_eq!(serde_json::from_str::<Machine>(&text(&bad.finite())).unwrap(), good);
    }
}
