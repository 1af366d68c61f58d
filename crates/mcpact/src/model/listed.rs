use std::ops::Deref;

use serde_json::Value;

/// A whole list, with what its server says about keeping it. It is used like the slice of its items.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed<T> {
    /// The items of all pages, in their order.
    pub items: Vec<T>,
    /// For how many milliseconds the server thinks that it holds: the shortest of its pages, and none
    /// unless each of them says; since 2026-07-28. Nothing is kept here: whoever keeps it keeps it
    /// apart for everyone who may ask.
    pub ttl_ms: Option<u64>,
    /// Whether it is the same for everybody, `public`, or not, `private`: public only if each of its
    /// pages is, and none unless each of them says; since 2026-07-28.
    pub cache_scope: Option<String>,
}

/// What one page says about keeping it.
#[derive(Debug)]
pub(crate) struct Hints {
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) cache_scope: Option<String>,
}

impl Hints {
    /// Reads the raw members of a result; what is not understood is not said.
    pub(crate) fn parse(ttl_ms: Option<&str>, cache_scope: Option<&str>) -> Self {
        let value = |raw: &str| serde_json::from_str::<Value>(raw).ok();
        Self {
            ttl_ms: ttl_ms.and_then(value).and_then(|ttl| ttl.as_u64()),
            cache_scope: cache_scope
                .and_then(value)
                .and_then(|scope| scope.as_str().map(str::to_owned)),
        }
    }
}

impl<T> Listed<T> {
    /// The first page.
    pub(crate) fn new(items: Vec<T>, hints: Hints) -> Self {
        let Hints {
            ttl_ms,
            cache_scope,
        } = hints;
        Self {
            items,
            ttl_ms,
            cache_scope,
        }
    }

    /// Another page: the list as a whole holds no longer, and for no one else, than each of its pages.
    pub(crate) fn followed_by(mut self, items: Vec<T>, hints: Hints) -> Self {
        self.items.extend(items);
        self.ttl_ms = match (self.ttl_ms, hints.ttl_ms) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (Some(_), None) | (None, _) => None,
        };
        self.cache_scope = match (self.cache_scope.take(), hints.cache_scope) {
            (Some(before), Some(now)) if before == "public" => Some(now),
            (Some(before), Some(_)) => Some(before),
            (Some(_), None) | (None, _) => None,
        };
        self
    }
}

impl<T> Deref for Listed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> IntoIterator for Listed<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'l, T> IntoIterator for &'l Listed<T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F18: a list holds no longer, and for no one else, than each of its pages.
    #[test]
    fn the_most_careful_page_counts() {
        let (long, short) = (Some("60000"), Some("10"));
        let (public, private) = (Some(r#""public""#), Some(r#""private""#));
        for (first, second, expected) in [
            ((long, public), (short, public), (Some(10), Some("public"))),
            (
                (short, public),
                (long, private),
                (Some(10), Some("private")),
            ),
            (
                (long, private),
                (long, public),
                (Some(60_000), Some("private")),
            ),
            ((None, public), (long, None), (None, None)),
            ((long, None), (Some("-1"), public), (None, None)),
            ((Some("1.5"), Some("7")), (long, public), (None, None)),
        ] {
            let list = Listed::new(vec![1], Hints::parse(first.0, first.1));
            let list = list.followed_by(vec![2], Hints::parse(second.0, second.1));
            let seen = (list.ttl_ms, list.cache_scope.as_deref());
            assert_eq!(seen, expected, "{first:?} {second:?}");
            assert_eq!(list[..], [1, 2]);
        }
    }
}
