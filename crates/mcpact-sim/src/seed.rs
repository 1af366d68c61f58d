//! Chance that can be repeated: the same seed gives the same numbers on every machine.

/// A generator of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Seed(u64);

impl Seed {
    /// Starts from a number.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number below `limit`; zero when there is none.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw().checked_rem(limit).unwrap_or(0)
    }

    /// Whether something happens that happens so often in a thousand times.
    pub fn happens(&mut self, per_mille: u16) -> bool {
        self.below(1000) < u64::from(per_mille)
    }
}
