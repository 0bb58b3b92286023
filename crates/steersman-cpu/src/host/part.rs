//! Which part the CPU is.

use super::proc_field;

/// Names and numbers of a CPU model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) brand: Option<String>,
    pub(super) vendor: Option<String>,
    pub(super) family: Option<u32>,
    pub(super) model: Option<u32>,
    pub(super) stepping: Option<u32>,
}

impl Part {
    /// From the CPU itself where it tells, else from the system's description of it.
    pub(super) fn detect(cpuinfo: &str) -> Part {
        #[cfg(target_arch = "x86_64")]
        let read = super::cpuid::part();
        #[cfg(not(target_arch = "x86_64"))]
        let read = Part::default();
        let described = Part::described(cpuinfo);
        Part {
            brand: read.brand.or(described.brand),
            vendor: read.vendor.or(described.vendor),
            family: read.family.or(described.family),
            model: read.model.or(described.model),
            stepping: read.stepping.or(described.stepping),
        }
    }

    /// From `/proc/cpuinfo`, in the words of x86 or of ARM.
    pub(super) fn described(cpuinfo: &str) -> Part {
        let field = |names: [&str; 2]| names.into_iter().find_map(|name| proc_field(cpuinfo, name));
        let number = |names| field(names).and_then(parse_number);
        Part {
            brand: field(["model name", "Model"]).map(str::to_owned),
            vendor: field(["vendor_id", "CPU implementer"]).map(str::to_owned),
            family: number(["cpu family", "CPU architecture"]),
            model: number(["model", "CPU part"]),
            stepping: number(["stepping", "CPU revision"]),
        }
    }
}

/// A number as `/proc` writes it: decimal, or hexadecimal after `0x`.
fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_is_the_one_proc_describes() {
        if let Ok(cpuinfo) = std::fs::read_to_string("/proc/cpuinfo") {
            assert_eq!(Part::detect(&cpuinfo), Part::described(&cpuinfo));
        }
    }

    #[test]
    fn an_arm_description_is_understood_and_an_empty_one_is_unknown() {
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd4f\nCPU revision\t: 1\n";
        let part = Part::described(arm);
        assert_eq!((part.vendor.as_deref(), part.family, part.model), (Some("0x41"), Some(8), Some(0xd4f)));
        assert_eq!((part.stepping, part.brand), (Some(1), None));
        assert_eq!(Part::described(""), Part::default());
    }

    #[test]
    fn numbers_are_read_in_both_bases() {
        assert_eq!(parse_number("0xd4f"), Some(0xd4f));
        assert_eq!(parse_number("17"), Some(17));
        assert_eq!(parse_number("zen"), None);
    }
}
