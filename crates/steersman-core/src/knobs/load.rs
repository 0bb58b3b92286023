//! Reading the sources.

use super::{KnobError, Knobs, Source, TABLE, paths};
use std::ffi::OsString;
use std::path::PathBuf;

const PREFIX: &str = "STEERSMAN_";
/// Names the configuration file; not a knob, because it is needed before any knob is read.
const CONFIG: &str = "STEERSMAN_CONFIG";

impl Knobs {
    /// Reads the process's environment and the configuration file: the one `STEERSMAN_CONFIG` names, which
    /// must then exist, else `config.toml` in the user's configuration folder, if there is one.
    pub fn load() -> Result<Knobs, KnobError> {
        let mut env = Vec::new();
        for (name, value) in std::env::vars_os() {
            let Some(name) = name.to_str().filter(|n| n.starts_with(PREFIX)) else { continue };
            let Some(value) = value.to_str() else {
                return Err(KnobError::NotText { name: name.to_string() });
            };
            env.push((name.to_string(), value.to_string()));
        }
        let config = read_config(&|name| std::env::var_os(name))?;
        Knobs::from_sources(env, config.as_ref().map(|(file, text)| (file.as_str(), text.as_str())))
    }

    /// The same from given variables and a given `(file name, TOML text)`. Variables without the prefix
    /// `STEERSMAN_` are ignored, and so are empty ones: that is how a shell unsets one for one command.
    pub fn from_sources(
        env: impl IntoIterator<Item = (String, String)>,
        config: Option<(&str, &str)>,
    ) -> Result<Knobs, KnobError> {
        let mut knobs = Knobs::default();
        if let Some((file, text)) = config {
            knobs.read_toml(file, text)?;
        }
        for (name, value) in env {
            if !name.starts_with(PREFIX) || name == CONFIG || value.is_empty() {
                continue;
            }
            let Some(index) = TABLE.iter().position(|k| k.env == name) else {
                let known = TABLE.iter().map(|k| k.env).chain([CONFIG]);
                return Err(KnobError::unknown_in("variable", &name, known));
            };
            knobs.apply(index, &value, Source::Env(TABLE[index].env), name)?;
        }
        Ok(knobs)
    }

    fn read_toml(&mut self, file: &str, text: &str) -> Result<(), KnobError> {
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| KnobError::Syntax {
            file: file.to_string(),
            why: e.to_string().trim_end().to_string(),
        })?;
        let mut pairs = Vec::new();
        flatten("", &table, &mut pairs);
        for (key, value) in pairs {
            let Some(index) = TABLE.iter().position(|k| k.name == key) else {
                let what = format!("key in {file}:");
                return Err(KnobError::unknown_in(&what, &key, TABLE.iter().map(|k| k.name)));
            };
            self.apply(index, &value, Source::File(file.to_string()), format!("{file}: {key}"))?;
        }
        Ok(())
    }
}

fn flatten(prefix: &str, table: &toml::Table, pairs: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, pairs),
            toml::Value::String(text) => pairs.push((name, text.clone())),
            toml::Value::Array(items) => {
                let texts: Vec<String> =
                    items.iter().map(|i| i.as_str().map_or(i.to_string(), str::to_string)).collect();
                pairs.push((name, if texts.is_empty() { "none".to_string() } else { texts.join(",") }));
            }
            other => pairs.push((name, other.to_string())),
        }
    }
}

fn read_config(env: &dyn Fn(&str) -> Option<OsString>) -> Result<Option<(String, String)>, KnobError> {
    let named = env(CONFIG).filter(|v| !v.is_empty()).map(PathBuf::from);
    let Some(path) = named.clone().or_else(|| paths::config_file(env)) else { return Ok(None) };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path.display().to_string(), text))),
        Err(why) if named.is_none() && why.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(KnobError::Unreadable { path, why }),
    }
}
