//! Marks of gateways and their roads, and how a header carries them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries marks.
pub(super) const VIA: HeaderName = HeaderName::from_static("mcpact-via");

/// How many marks a message carries; nobody has a longer circle.
const MOST: usize = 64;

/// How many letters a mark has.
const LETTERS: usize = 32;

/// What tells one road of a gateway from all others, or stands for all of them, whichever there will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    gateway: u64,
    /// None is zero.
    road: u64,
}

impl Mark {
    /// All roads of a gateway; none without randomness, with which all gateways would be alike.
    pub(crate) fn of_gateway() -> Option<Self> {
        let gateway = getrandom::u64().ok()?;
        Some(Self { gateway, road: 0 })
    }

    /// One road of the same gateway.
    pub(super) fn of_road(self) -> Option<Self> {
        let road = getrandom::u64().ok()?.max(1);
        Some(Self { road, ..self })
    }

    const fn of_all(self) -> Self {
        Self { road: 0, ..self }
    }

    /// None for what is not ours, whoever sent it.
    fn parse(text: &str) -> Option<Self> {
        let is_mark = text.len() == LETTERS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (gateway, road) = is_mark.then(|| text.split_at_checked(LETTERS / 2))??;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Self {
            gateway: number(gateway)?,
            road: number(road)?,
        })
    }
}

/// The marks of a message, no more than there may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(BTreeSet<Mark>);

impl Marks {
    /// Those of a message; none if it carries no such header.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(VIA).iter().peekable();
        values.peek()?;
        let texts = values.filter_map(|value| value.to_str().ok());
        let marks = texts.flat_map(|text| text.split(',').take(MOST));
        Some(marks.filter_map(|mark| Mark::parse(mark.trim())).collect())
    }

    /// As a header carries them.
    pub(super) fn encode(&self) -> Option<HeaderValue> {
        let mut text = String::with_capacity(self.0.len() * (LETTERS + 2));
        for Mark { gateway, road } in &self.0 {
            let between = if text.is_empty() { "" } else { ", " };
            // To write into memory never fails.
            let _ = write!(text, "{between}{gateway:016x}{road:016x}");
        }
        HeaderValue::try_from(text).ok()
    }

    /// Whether this road is among them, by itself or with all of its gateway.
    pub(super) fn cover(&self, mark: Mark) -> bool {
        self.0.contains(&mark) || self.0.contains(&mark.of_all())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Mark> {
        self.0.iter().copied()
    }
}

impl FromIterator<Mark> for Marks {
    /// The first ones.
    fn from_iter<I: IntoIterator<Item = Mark>>(marks: I) -> Self {
        let mut all = BTreeSet::new();
        for mark in marks {
            if all.len() >= MOST {
                break;
            }
            all.insert(mark);
        }
        Self(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Option<Marks> {
        let values = values
            .iter()
            .map(|value| (VIA, HeaderValue::from_str(value).unwrap()));
        Marks::of(&values.collect())
    }

    /// Marks survive their header, and that of a gateway stands for all its roads; what is none is left out, and there are never too many.
    #[test]
    fn headers_carry_marks() {
        let mark = |gateway, road| Mark { gateway, road };
        let some: Marks = [mark(1, 0), mark(2, 7)].into_iter().collect();
        for (road, expected) in [
            (mark(1, 0), true),
            (mark(1, 9), true),
            (mark(2, 7), true),
            (mark(2, 8), false),
            (mark(2, 0), false),
        ] {
            assert_eq!(some.cover(road), expected, "{road:?}");
        }
        let text = some.encode().unwrap();
        let text = text.to_str().unwrap();
        assert_eq!(read(&[text]), Some(some.clone()));
        let (one, other) = text.split_once(", ").unwrap();
        assert_eq!(read(&[other, one]), Some(some));
        assert_eq!(read(&[]), None);
        assert_eq!(Marks::default().encode().unwrap(), "");
        for nothing in [
            "",
            ",,",
            "1",
            "x".repeat(LETTERS).as_str(),
            "+0000000000000000000000000000001",
        ] {
            assert_eq!(read(&[nothing]), Some(Marks::default()), "{nothing}");
        }
        let many: Vec<String> = (0..1000).map(|number| format!("{number:032x}")).collect();
        let many = read(&[&many.join(","), &many[500..].join(",")]).unwrap();
        assert_eq!(many.iter().count(), MOST);
    }
}
