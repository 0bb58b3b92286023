use super::*;
use std::ffi::OsString;

fn from(env: &[(&str, &str)], config: &str) -> Result<Knobs, KnobError> {
    let env = env.iter().map(|(n, v)| (n.to_string(), v.to_string()));
    Knobs::from_sources(env, Some(("config.toml", config)))
}

fn complaint(env: &[(&str, &str)], config: &str) -> String {
    from(env, config).expect_err("this should be refused").to_string()
}

#[test]
fn the_table_states_the_real_defaults_and_regular_names() {
    let knobs = Knobs::default();
    for k in TABLE {
        assert_eq!((k.show)(&knobs.settings), k.default, "{}", k.name);
        assert_eq!(k.env, format!("STEERSMAN_{}", k.name.replace('.', "_").to_uppercase()));
        let mut again = knobs.clone();
        again.set(k.name, "default").unwrap();
        assert_eq!(again.settings, knobs.settings, "{}", k.name);
    }
}

#[test]
fn later_sources_win_and_are_named() {
    let config = "frozen = true\nnumerics = \"exact\"\n[explore]\nbudget = 0.5\n";
    let mut knobs = from(&[("STEERSMAN_EXPLORE_BUDGET", "0.25"), ("STEERSMAN_FROZEN", "")], config).unwrap();
    assert_eq!(knobs.explore_budget, 0.25);
    assert!(knobs.frozen, "an empty variable does not override the file");
    assert_eq!(knobs.source("explore.budget"), Some(&Source::Env("STEERSMAN_EXPLORE_BUDGET")));
    assert_eq!(knobs.source("numerics"), Some(&Source::File("config.toml".into())));
    assert_eq!(knobs.source("policy"), Some(&Source::Default));
    knobs.set("explore.budget", "0").unwrap();
    assert_eq!(knobs.explore_budget, 0.0);
    assert_eq!(knobs.source("explore.budget"), Some(&Source::Program));
}

#[test]
fn every_toml_type_can_set_a_knob() {
    let config = r#"
        small_batch = 64
        disable = ["cpu/openblas*", "cpu/scalar"]
        memory.idle_limit = "512MiB"
        memory.limit = 1_000_000
        log.level = "off"
        policy = "threshold"
    "#;
    let knobs = from(&[], config).unwrap();
    assert_eq!(knobs.small_batch, Some(64));
    assert_eq!(knobs.memory_idle_limit, crate::Bytes(512 << 20));
    assert_eq!(knobs.memory_limit, Some(crate::Bytes(1_000_000)));
    assert_eq!(knobs.log_level, LogLevel::Off);
    assert_eq!(knobs.policy, PolicyKind::Threshold);
    assert!(!knobs.allows("cpu/openblas-64") && !knobs.allows("cpu/scalar"));
    assert!(knobs.allows("cpu/scalar-2") && knobs.allows("cpu/gemm"));
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest_one() {
    let said = complaint(&[("STEERSMAN_EXPLOR_BUDGET", "0.1")], "");
    assert!(
        said.contains("STEERSMAN_EXPLOR_BUDGET") && said.contains("did you mean STEERSMAN_EXPLORE_BUDGET?")
    );
    let said = complaint(&[], "[wisdom]\npaht = \"x\"");
    assert!(said.contains("config.toml") && said.contains("did you mean wisdom.path?"), "{said}");
    let said = complaint(&[("STEERSMAN_COMPLETELY_DIFFERENT_THING", "1")], "");
    assert!(!said.contains("did you mean"), "{said}");
}

#[test]
fn a_bad_value_names_the_knob_the_source_the_value_and_what_is_accepted() {
    let said = complaint(&[("STEERSMAN_THREADS_MAX", "0")], "");
    for part in ["STEERSMAN_THREADS_MAX", "threads.max", "\"0\"", "at least 1"] {
        assert!(said.contains(part), "{said}");
    }
    let said = complaint(&[], "explore.budget = 1.5");
    assert!(said.contains("config.toml: explore.budget") && said.contains("1.5"), "{said}");
    let nonsense = [
        ("STEERSMAN_GUARD_SAMPLE", "NaN"),
        ("STEERSMAN_TIE_BAND", "-0.1"),
        ("STEERSMAN_FROZEN", "maybe"),
        ("STEERSMAN_NUMERICS", "sloppy"),
        ("STEERSMAN_POLICY", "lucky"),
        ("STEERSMAN_MEMORY_LIMIT", "12 parsecs"),
        ("STEERSMAN_OBSERVE_EVERY", "99999999999"),
        ("STEERSMAN_DISABLE", "a,,b"),
        ("STEERSMAN_FORCE", "two words"),
        ("STEERSMAN_LOG_LEVEL", "loud"),
    ];
    for (name, value) in nonsense {
        assert!(complaint(&[(name, value)], "").contains(name), "{name}");
    }
}

#[test]
fn broken_toml_is_reported_with_its_file() {
    assert!(complaint(&[], "frozen = = 1").contains("config.toml is not valid TOML"));
}

#[test]
fn sizes_are_read_with_units_and_shown_so_that_they_read_back() {
    let cases = [("512MiB", 512 << 20), ("1GB", 1_000_000_000), ("1.5 gib", 3 << 29), ("0", 0), ("7", 7)];
    for (text, want) in cases {
        let got = parse_bytes(text).unwrap();
        assert_eq!(got.0, want, "{text}");
        assert_eq!(parse_bytes(&value::Value::show(&got)), Some(got));
    }
    for bad in ["", "MiB", "5M", "1.5", "0.5 B", "-1", "1e3", "99999999TiB", "1.2.3", "nan"] {
        assert_eq!(parse_bytes(bad), None, "{bad}");
    }
}

#[test]
fn globs_match_whole_names() {
    for (pattern, name, want) in [
        ("cpu/*", "cpu/gemm", true),
        ("*blas*", "cpu/openblas", true),
        ("*", "", true),
        ("a*a", "a", false),
        ("a*b*c", "axxbyyc", true),
        ("cpu/gemm", "cpu/gemm2", false),
    ] {
        assert_eq!(value::glob(pattern, name), want, "{pattern} {name}");
    }
}

#[test]
fn folders_follow_xdg_and_ignore_relative_paths() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let env = |vars: &'static [(&str, &str)]| {
        move |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v))
    };
    let at = |p: Option<PathBuf>| p.map(|p| p.display().to_string());
    assert_eq!(
        at(wisdom_file(&env(&[("XDG_DATA_HOME", "/d"), ("HOME", "/h")]))).as_deref(),
        Some("/d/steersman/wisdom.db")
    );
    assert_eq!(
        at(wisdom_file(&env(&[("XDG_DATA_HOME", "d"), ("HOME", "/h")]))).as_deref(),
        Some("/h/.local/share/steersman/wisdom.db")
    );
    assert_eq!(wisdom_file(&env(&[])), None);
    assert_eq!(at(config_file(&env(&[("HOME", "/h")]))).as_deref(), Some("/h/.config/steersman/config.toml"));
}
