//! Where work can run and where data lives.

use std::fmt;
use std::str::FromStr;

/// A device of one runtime, by registration order. Never persisted: [`Identity`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub u16);

/// Where data lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The host's memory.
    Host,
    /// A device's own memory.
    Device(DeviceId),
}

impl Place {
    /// The device whose memory it is; none for the host.
    pub fn device(self) -> Option<DeviceId> {
        match self {
            Place::Host => None,
            Place::Device(id) => Some(id),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Host => f.write_str("host"),
            Place::Device(d) => write!(f, "device:{}", d.0),
        }
    }
}

impl FromStr for Place {
    type Err = ();
    /// As it prints: `host`, or `device:1` by registration. [`Places`] knows devices by family.
    fn from_str(s: &str) -> Result<Place, ()> {
        match s.strip_prefix("device:") {
            Some(index) => index.parse().map(|i| Place::Device(DeviceId(i))).map_err(|_| ()),
            None if s == "host" => Ok(Place::Host),
            None => Err(()),
        }
    }
}

/// What people call places: `host`, and `vulkan:0` for the first device of that family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places(Vec<(String, Place)>);

impl Default for Places {
    fn default() -> Places {
        Places(vec![("host".into(), Place::Host)])
    }
}

impl Places {
    /// The places of these devices, which are in order of registration.
    pub fn of(devices: &[Device]) -> Places {
        let mut places = Places::default();
        for (i, d) in devices.iter().enumerate() {
            let family = &d.identity.family;
            let nth = devices[..i].iter().filter(|o| o.identity.family == *family).count();
            places.0.push((format!("{family}:{nth}"), d.place));
        }
        places
    }

    /// The place of this name.
    pub fn find(&self, name: &str) -> Option<Place> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, p)| *p)
    }

    /// The name of this place.
    pub fn name(&self, place: Place) -> String {
        self.0.iter().find(|(_, p)| *p == place).map_or_else(|| place.to_string(), |(n, _)| n.clone())
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(n, _)| n.as_str())
    }
}

/// What a device is: everything that, when it changes, makes old measurements doubtful. Never an index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// Device family: `cpu`, `cuda`, `vulkan`, ...
    pub family: String,
    /// The part's name as the hardware gives it.
    pub part: String,
    /// Driver or operating system and version.
    pub driver: String,
    /// Bytes of memory, if it could be read.
    pub memory: Option<u64>,
    /// Units that run at once.
    pub parallelism: u32,
    /// Instruction sets or features, sorted.
    pub isa: Vec<String>,
}

impl Identity {
    /// A stable 64-bit fingerprint, the validity key of everything learned on the device.
    pub fn fingerprint(&self) -> u64 {
        let mut text =
            format!("{}|{}|{}|{:?}|{}", self.family, self.part, self.driver, self.memory, self.parallelism);
        for i in &self.isa {
            text.push('|');
            text.push_str(i);
        }
        fnv1a(text.as_bytes())
    }
}

/// FNV-1a: stable across versions and machines, which `std`'s hasher does not promise.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ b as u64).wrapping_mul(0x0100_0000_01b3))
}

/// Somewhere work can run.
#[derive(Clone, Debug)]
pub struct Device {
    /// What it is.
    pub identity: Identity,
    /// Where its kernels read and write. One with memory of its own may say any device: an engine that it is
    /// added to puts the id that it gives in here.
    pub place: Place,
    /// Rates measured on it; unknown ones are absent.
    pub machine: crate::cost::Machine,
}
