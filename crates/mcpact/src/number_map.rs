//! Map with keys that this process counts up itself, so that no peer chooses them: a cheap hash is safe.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Map from sequential numbers.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Hasher for one sequential number.
#[derive(Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        // The map takes the slot from the low bits and a tag from the high ones.
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 << 8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write_i64(&mut self, number: i64) {
        self.0 = number.cast_unsigned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequential_numbers_have_different_hashes_in_low_and_high_bits() {
        let hash = |number: i64| {
            let mut hasher = NumberHasher::default();
            hasher.write_i64(number);
            hasher.finish()
        };
        let mut low: Vec<u64> = (0..128).map(|number| hash(number) % 128).collect();
        low.sort_unstable();
        low.dedup();
        assert_eq!(low.len(), 128);
        let mut high: Vec<u64> = (0..128).map(|number| hash(number) >> 57).collect();
        high.sort_unstable();
        high.dedup();
        assert!(high.len() > 64, "{}", high.len());
    }
}
