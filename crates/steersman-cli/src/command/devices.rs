//! `steer devices`: what this machine has, and how fast it was found to be.

use crate::exit::Outcome;
use crate::open;
use crate::paint::Ink;
use crate::screen::Screen;
use crate::table::{
    Column::{Left, Right},
    Table,
};
use serde_json::json;
use steersman::Runtime;
use steersman::webgpu::{Found, adapters};
use steersman_core::cost::{Level, Machine};
use steersman_core::place::{Lane, Link};
use steersman_core::sense::{Senses, State};
use steersman_core::units::{count, si};
use steersman_core::{Bytes, Device, DeviceId, Place, Seconds};

pub fn run(screen: &Screen) -> Outcome {
    let runtime = open::runtime()?;
    let devices = runtime.engine().devices();
    if screen.json {
        let list: Vec<_> = devices.iter().enumerate().map(|(i, d)| as_json(&runtime, i, d)).collect();
        let state = Senses::new().read();
        let adapters: Vec<_> = adapters()
            .iter()
            .map(|a| {
                let i = &a.identity;
                json!({
                    "family": i.family, "part": i.part, "driver": i.driver, "software": a.software,
                    "shares_memory": a.shares_memory, "used": is_used(&devices, a),
                })
            })
            .collect();
        let calibrated = runtime.calibrated();
        return screen.data(
            &json!({ "calibrated": calibrated, "devices": list, "adapters": adapters, "state": state }),
        );
    }
    let adapters = adapters();
    for (i, d) in devices.iter().enumerate() {
        let software = adapters.iter().any(|a| a.software && a.identity == d.identity);
        screen.print(&as_text(screen, &runtime, i, d, software))?;
    }
    screen.print(&unused(screen, &runtime, &devices, &adapters))?;
    screen.print(&state(screen, &Senses::new().read()))
}

fn is_used(devices: &[Device], adapter: &Found) -> bool {
    devices.iter().any(|d| d.identity == adapter.identity)
}

/// What is said of a part that is the CPU in disguise.
const SOFTWARE: &str = ", software on this CPU";

/// Adapters that could take part and do not.
fn unused(screen: &Screen, runtime: &Runtime, devices: &[Device], adapters: &[Found]) -> String {
    let notes: Vec<String> = runtime.log().entries().into_iter().filter_map(|e| e.note).collect();
    let mut out = String::new();
    for a in adapters.iter().filter(|a| !is_used(devices, a)) {
        let kind = if a.software { SOFTWARE } else { "" };
        let heading = format!("{} ({}{kind})", a.identity.part, a.identity.family);
        out += &format!("\n{}\n", screen.paint.ink(&heading, Ink::Bold));
        let said = notes.iter().find(|n| n.starts_with(&a.identity.part));
        let why = match said {
            _ if !runtime.knobs().webgpu_enabled => "STEERSMAN_WEBGPU_ENABLED=true lets it take part",
            Some(said) => said,
            None => "nothing was said of why",
        };
        out += &format!("  not used; {why}\n");
    }
    out
}

/// What the machine's sensors say now.
fn state(screen: &Screen, s: &State) -> String {
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_string());
    let mut table = Table::new(&[Left(""), Left("")]);
    table.row(["  free memory".to_string(), or_unknown(s.mem_available.map(|b| b.to_string()))]);
    table.row([
        "  load".to_string(),
        or_unknown(s.load1.map(|l| format!("{l:.2} tasks over the last minute"))),
    ]);
    let hottest = s.temperatures.iter().max_by(|a, b| a.celsius.total_cmp(&b.celsius));
    let hottest = hottest.map(|t| format!("{:.0} °C ({})", t.celsius, t.sensor));
    table.row(["  hottest sensor".to_string(), or_unknown(hottest)]);
    table.row(["  clock governor".to_string(), or_unknown(s.governor.clone())]);
    format!("\n{}", table.show(&screen.paint))
}

/// One line for a heading: part, threads, instruction sets, memory. Of other devices than a CPU the part alone: the
/// rest is a long list.
pub fn heading(runtime: &Runtime, d: &Device) -> String {
    let memory = d.identity.memory.map_or("unknown memory".into(), |m| Bytes(m).to_string());
    let i = &d.identity;
    match d.place {
        Place::Host => {
            let threads = count(runtime.cpu().team.max(), "thread");
            format!("{}, {threads}, {}, {memory}", i.part, i.isa.join(" "))
        }
        Place::Device(_) => i.part.clone(),
    }
}

fn kernels(runtime: &Runtime, device: usize) -> Vec<String> {
    let of = runtime.engine().registry().iter().filter(|(_, k)| k.device().0 as usize == device);
    of.map(|(_, k)| k.name().to_string()).collect()
}

fn as_json(runtime: &Runtime, index: usize, d: &Device) -> serde_json::Value {
    let i = &d.identity;
    let host = (i.family == "cpu").then(|| runtime.cpu().host.as_ref());
    let threads = host.map(|_| runtime.cpu().team.max());
    json!({
        "family": i.family, "part": i.part, "driver": i.driver, "memory_bytes": i.memory,
        "parallelism": i.parallelism, "threads": threads, "isa": i.isa,
        "fingerprint": format!("{:016x}", i.fingerprint()),
        "place": runtime.engine().places().name(d.place),
        "lost": runtime.engine().guard().lost(DeviceId(index as u16)),
        "link": link(runtime, d),
        "host": host,
        "rates": d.machine,
        "kernels": kernels(runtime, index),
    })
}

/// What moving costs to and from a device with memory of its own.
fn link(runtime: &Runtime, d: &Device) -> Option<serde_json::Value> {
    let Place::Device(id) = d.place else { return None };
    let wire = runtime.engine().wire(id)?;
    let lane = |l: &Lane| {
        json!({
            "latency_s": l.link().latency, "bytes_per_s": l.link().bandwidth, "bytes_per_s_beyond": l.link().beyond,
            "transfers_seen": l.samples(),
        })
    };
    let lent = wire.lent.as_ref().map(|l| l.link().latency);
    Some(json!({
        "to_device": lane(&wire.out), "to_host": lane(&wire.home), "lending_s": lent,
        "saved_after_work_s": wire.joined,
    }))
}

/// One direction in words.
fn lane(l: &Lane) -> String {
    let link = l.link();
    let known = match l.samples() {
        0 => "supposed: nothing was moved yet".to_string(),
        n => format!("from {n} transfers"),
    };
    let beyond = match link.beyond == link.bandwidth {
        true => String::new(),
        false => format!(", {} beyond {} MiB", si(link.beyond, "B/s"), Link::NEAR >> 20),
    };
    format!("{} and {}{beyond} ({known})", link.latency, si(link.bandwidth, "B/s"))
}

fn as_text(screen: &Screen, runtime: &Runtime, index: usize, d: &Device, software: bool) -> String {
    let i = &d.identity;
    let kind = if software { SOFTWARE } else { "" };
    let mut out = format!("{}\n", screen.paint.ink(&format!("{}{kind}", heading(runtime, d)), Ink::Bold));
    let mut facts = Table::new(&[Left(""), Left("")]);
    facts.row(["  family", &i.family]);
    facts.row(["  place", &runtime.engine().places().name(d.place)]);
    if let Place::Device(id) = d.place {
        if let Some(wire) = runtime.engine().wire(id) {
            facts.row(["  moving there", &lane(&wire.out)]);
            facts.row(["  moving home", &lane(&wire.home)]);
            if let Some(saved) = wire.joined.filter(|s| *s > 0.0) {
                facts.row(["  right after work", &format!("{} less", Seconds(saved))]);
            }
            if let Some(lent) = &wire.lent {
                facts.row(["  lending to the host", &format!("{}, whatever its size", lent.link().latency)]);
            }
        }
        if let Some(why) = runtime.engine().guard().lost(id) {
            facts.row(["  lost", &why]);
        }
    }
    facts.row(["  system", &i.driver]);
    facts.row(["  fingerprint", &format!("{:016x}", i.fingerprint())]);
    facts.row(["  kernels", &kernels(runtime, index).len().to_string()]);
    let handoff = d.machine.handoff.map_or("unknown".into(), |s| Seconds(s).to_string());
    let away = d.place != Place::Host;
    facts.row([if away { "  launch" } else { "  thread hand-off" }, &handoff]);
    if away {
        facts.row(["  workgroup", &format!("at most {} invocations", i.parallelism)]);
        facts.row(["  features", &i.isa.join(" ")]);
    }
    let mut peaks: Vec<_> = d.machine.peak_f32.iter().collect();
    peaks.sort_by(|a, b| a.1.total_cmp(b.1));
    for (isa, rate) in peaks {
        let each = if away { "" } else { " a core" };
        facts.row([format!("  peak {isa}"), format!("{}{each} in f32", si(*rate, "flop/s"))]);
    }
    out += &facts.show(&screen.paint);
    out += "\n";
    out + &levels(screen, &d.machine)
}

fn levels(screen: &Screen, machine: &Machine) -> String {
    if machine.levels.is_empty() {
        return "  memory levels: unknown; `steer calibrate` measures them\n".to_string();
    }
    let most = machine.levels.iter().map(|l| l.copy.len()).max().unwrap_or(1);
    let counts = if most > 1 { vec![1, most] } else { vec![1] };
    let columns =
        [Left("  level"), Right("holds"), Right("threads"), Right("read"), Right("copy"), Right("stream")];
    let mut table = Table::new(&columns);
    for level in &machine.levels {
        for &threads in &counts {
            table.row(level_row(level, threads));
        }
    }
    table.show(&screen.paint)
}

fn level_row(l: &Level, threads: usize) -> [String; 6] {
    let rate = |list: &[f64]| {
        let found = list.get(threads - 1).copied().filter(|r| *r > 0.0);
        found.map_or("unknown".to_string(), |r| si(r, "B/s"))
    };
    let holds = l.capacity.map_or(String::new(), |c| Bytes(c).to_string());
    [format!("  {}", l.name), holds, threads.to_string(), rate(&l.read), rate(&l.copy), rate(&l.stream)]
}
