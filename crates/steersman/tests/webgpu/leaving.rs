//! Programs that end while adapters are still being looked for.

use std::time::Duration;
use steersman::core::log::Entry;
use steersman::core::wisdom::Wisdom;
use steersman::{Knobs, Runtime};

#[test]
fn what_was_learned_is_on_disk_when_the_last_handle_is_gone_whatever_a_driver_is_at() {
    if crate::adapter(Default::default()).is_none() {
        return;
    }
    // Listed, opened, probed, there: wherever the search is.
    for wait in [0, 20, 60, 120, 250, 400, 800] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wisdom.db");
        let mut knobs = Knobs::default();
        let path_text = path.to_str().expect("a path in plain text");
        let own = [("wisdom.path", path_text), ("calibrate.background", "false"), ("webgpu.enabled", "true")];
        for (name, value) in own {
            knobs.set(name, value).expect("a knob");
        }
        let rt = Runtime::with_knobs(knobs).expect("a runtime");
        rt.log().push(Entry { kernel: "something to remember".into(), ..Entry::default() });
        let fingerprint = rt.fingerprint();
        std::thread::sleep(Duration::from_millis(wait));
        drop(rt);
        let saved = Wisdom::open(Some(&path)).wisdom.load(fingerprint);
        assert!(saved.machine.is_some(), "nothing was saved after {wait} ms");
    }
}
