//! Keys that a scan has passed. They replace later searches of the text.

/// Set of the keys, at any depth of a value, for which a gateway looks into results.
///
/// A missing key is certain. A present one is a reason to look: a tool may use the same key in its own data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenKeys(u8);

impl SeenKeys {
    /// No keys.
    pub(crate) const NONE: Self = Self(0);
    /// Keys of a value that was not scanned: any.
    pub const ANY: Self = Self(u8::MAX);
    /// `uri` or the URI of a view.
    pub const URI: Self = Self(1);
    /// `taskId`.
    pub const TASK_ID: Self = Self(1 << 1);
    /// `inputRequests`.
    pub const INPUT_REQUESTS: Self = Self(1 << 2);
    /// `requestState`.
    pub const REQUEST_STATE: Self = Self(1 << 3);

    /// Returns whether one of these keys may be in the value.
    #[must_use]
    pub const fn may_have(self, keys: Self) -> bool {
        self.0 & keys.0 != 0
    }

    const fn of(key: &[u8]) -> Self {
        match key {
            b"uri" | b"resourceUri" | b"ui/resourceUri" => Self::URI,
            b"taskId" => Self::TASK_ID,
            b"inputRequests" => Self::INPUT_REQUESTS,
            b"requestState" => Self::REQUEST_STATE,
            _ => Self::NONE,
        }
    }

    /// Returns the keys of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Record of the keys that a scan passes. It may take equal keys of different objects at one depth for a repetition.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyRecord {
    seen: SeenKeys,
    /// Bloom filter of the keys, if repetitions matter.
    filter: Option<[u64; 4]>,
    may_repeat: bool,
}

impl KeyRecord {
    /// Returns a record that notices repetitions.
    pub(crate) const fn of_repetitions() -> Self {
        Self {
            seen: SeenKeys::NONE,
            filter: Some([0; 4]),
            may_repeat: false,
        }
    }

    /// Adds a key, as it is in the text, of an object at this depth. One with escapes may be any key.
    #[inline(always)]
    pub(crate) fn add(&mut self, key: &[u8], is_escaped: bool, depth: u32) {
        if is_escaped {
            self.seen = SeenKeys::ANY;
            self.may_repeat = true;
            return;
        }
        self.seen = self.seen.with(SeenKeys::of(key));
        let Some(filter) = &mut self.filter else {
            return;
        };
        let digest = key_digest(key, depth);
        let bit = 1 << (digest & 63);
        if let Some(word) = filter.get_mut((digest >> 6 & 3) as usize) {
            self.may_repeat |= *word & bit != 0;
            *word |= bit;
        }
    }

    pub(crate) const fn seen(&self) -> SeenKeys {
        self.seen
    }

    /// Returns false if no object has two equal keys.
    pub(crate) const fn may_repeat(&self) -> bool {
        self.may_repeat
    }
}

/// Digest of depth, length, start and end.
#[inline(always)]
fn key_digest(key: &[u8], depth: u32) -> u64 {
    let (start, end) = match (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        (Some(start), Some(end)) => (u64::from_le_bytes(*start), u64::from_le_bytes(*end)),
        _ => (
            key.iter()
                .fold(0, |short, byte| (short << 8) | u64::from(*byte)),
            0,
        ),
    };
    let place = ((key.len() as u64) << 56) ^ (u64::from(depth) << 40);
    let mixed = start ^ end.rotate_left(29) ^ place;
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
}
