use std::ops::Deref;

use serde_json::Value;

/// Complete list with the server's cache hints. It dereferences to the slice of its items.
#[derive(Clone, Debug, PartialEq)]
pub struct ListResult<T> {
    /// Items of all pages, in order.
    pub items: Vec<T>,
    /// Cache lifetime in milliseconds: the minimum of all pages, if every page has one; since 2026-07-28. Nothing is
    /// cached here; callers must cache per principal.
    pub ttl_ms: Option<u64>,
    /// Cache scope `public` or `private`: public only if all pages are, and none unless every page has one; since
    /// 2026-07-28.
    pub cache_scope: Option<String>,
}

/// Cache hints of one page.
#[derive(Debug)]
pub(crate) struct CacheHints {
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) cache_scope: Option<String>,
}

impl CacheHints {
    /// Parses the raw members of a result; invalid hints are ignored.
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

impl<T> ListResult<T> {
    /// Creates a list from its first page.
    pub(crate) fn new(items: Vec<T>, hints: CacheHints) -> Self {
        let CacheHints {
            ttl_ms,
            cache_scope,
        } = hints;
        Self {
            items,
            ttl_ms,
            cache_scope,
        }
    }

    /// Appends a page; the strictest cache hints apply.
    pub(crate) fn followed_by(mut self, items: Vec<T>, hints: CacheHints) -> Self {
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

impl<T> Deref for ListResult<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> IntoIterator for ListResult<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'l, T> IntoIterator for &'l ListResult<T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F18: the strictest cache hints of all pages apply.
    #[test]
    fn strictest_cache_hints_apply() {
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
            let list = ListResult::new(vec![1], CacheHints::parse(first.0, first.1));
            let list = list.followed_by(vec![2], CacheHints::parse(second.0, second.1));
            let seen = (list.ttl_ms, list.cache_scope.as_deref());
            assert_eq!(seen, expected, "{first:?} {second:?}");
            assert_eq!(list[..], [1, 2]);
        }
    }
}
