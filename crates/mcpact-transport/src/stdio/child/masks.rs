//! Values that must not be seen in what a child writes to its log.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

/// Shorter values are words that a log may use by chance, and no secrets worth the name.
const SHORTEST: usize = 8;

/// Values that are covered wherever they stand, such as those of the variables that were set for a child.
#[derive(Clone, Default)]
pub struct Masks(Arc<[String]>);

impl std::fmt::Debug for Masks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Masks").field(&self.0.len()).finish()
    }
}

impl Masks {
    pub(super) fn of(env: &BTreeMap<OsString, OsString>) -> Self {
        let values = env.values();
        Self::new(values.map(|value| value.to_string_lossy().into_owned()))
    }

    /// Covers these values; those of fewer than eight bytes are words that a text may use by chance, and
    /// no secrets worth the name.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values
            .into_iter()
            .filter(|value| value.len() >= SHORTEST)
            .collect();
        // A value that contains another one goes first, or its rest would stay.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values.into())
    }

    /// The text with every such value covered.
    #[must_use]
    pub fn cover(&self, text: String) -> String {
        self.0
            .iter()
            .fold(text, |text, value| match text.contains(value.as_str()) {
                true => text.replace(value.as_str(), "***"),
                false => text,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::Masks;

    /// K5: the values of variables are covered in a child's log, the longest first.
    #[test]
    fn values_are_covered() {
        let env = [
            ("TOKEN", "hunter2-hunter2"),
            ("SHORT", "debug"),
            ("LONG", "hunter2-hunter2-x"),
        ];
        let masks = Masks::of(&env.map(|(k, v)| (k.into(), v.into())).into());
        let line = "debug: using hunter2-hunter2-x and hunter2-hunter2".to_owned();
        assert_eq!(masks.cover(line), "debug: using *** and ***");
        assert!(!format!("{masks:?}").contains("hunter2"));
    }
}
