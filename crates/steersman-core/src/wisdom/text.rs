//! Fingerprints and payloads as text, for JSON.

/// As 16 hexadecimal digits: a JSON number would lose the low bits of 64.
pub(super) mod fingerprint {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(v: &u64, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&format!("{v:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
        let text = String::deserialize(d)?;
        u64::from_str_radix(&text, 16).map_err(|_| D::Error::custom(format!("{text:?} is not a fingerprint")))
    }
}

/// As itself if it is text, else as `hex:` and digits.
pub(super) mod payload {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    const HEX: &str = "hex:";

    pub fn serialize<S: Serializer>(v: &[u8], s: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(v) {
            Ok(text) if !text.starts_with(HEX) => s.serialize_str(text),
            _ => s.serialize_str(&v.iter().fold(HEX.to_string(), |out, b| format!("{out}{b:02x}"))),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(d)?;
        let Some(digits) = text.strip_prefix(HEX) else { return Ok(text.into_bytes()) };
        let pair = |p: &[u8]| match p {
            [a, b] => Some(((*a as char).to_digit(16)? * 16 + (*b as char).to_digit(16)?) as u8),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(pair).collect();
        bytes.ok_or_else(|| D::Error::custom("the payload's hexadecimal digits are damaged"))
    }
}
