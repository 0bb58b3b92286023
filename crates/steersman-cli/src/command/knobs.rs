//! `steer knobs`: every setting, its value and who set it.

use crate::exit::{Failure, Outcome};
use crate::paint::Ink;
use crate::screen::Screen;
use crate::table::{Column::Left, Table};
use serde_json::json;
use steersman_core::Knobs;
use steersman_core::knobs::config_file;

pub fn run(screen: &Screen) -> Outcome {
    let knobs = Knobs::load().map_err(Failure::input)?;
    let config = std::env::var_os("STEERSMAN_CONFIG").filter(|v| !v.is_empty()).map(std::path::PathBuf::from);
    let config = config.or_else(|| config_file(&|name| std::env::var_os(name)));
    if screen.json {
        return screen.data(&json!({ "config": config, "knobs": knobs.list() }));
    }
    let mut table =
        Table::new(&[Left("knob"), Left("value"), Left("from"), Left("variable"), Left("what it does")]);
    for k in knobs.list() {
        let ink = if k.source == "default" { Ink::Plain } else { Ink::Bold };
        table.inked(ink, [k.name, &k.value, &k.source, k.env, k.help]);
    }
    screen.print(&table.show(&screen.paint))?;
    let at =
        config.map_or("no config folder is known".to_string(), |p| format!("config file: {}", p.display()));
    screen.line(&screen.paint.ink(&format!("\n{at}"), Ink::Dim))
}
