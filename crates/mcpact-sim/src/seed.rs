//! Reproducible random numbers: the same seed yields the same numbers on every system.

/// Random number generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Seed(u64);

impl Seed {
    /// Creates a generator.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Next number below `limit`; zero if the limit is zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw().checked_rem(limit).unwrap_or(0)
    }

    /// Returns true with this probability per mille.
    pub fn happens(&mut self, per_mille: u16) -> bool {
        self.below(1000) < u64::from(per_mille)
    }
}
