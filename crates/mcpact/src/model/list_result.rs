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

impl<T> ListResult<T> {
    /// Creates a list of one page, with the raw cache hints of its result; invalid hints are ignored.
    pub(crate) fn of_page(items: Vec<T>, ttl_ms: Option<&str>, cache_scope: Option<&str>) -> Self {
        let value = |raw: &str| serde_json::from_str::<Value>(raw).ok();
        let scope = cache_scope.and_then(value);
        Self {
            items,
            ttl_ms: ttl_ms.and_then(value).and_then(|ttl| ttl.as_u64()),
            cache_scope: scope.and_then(|scope| scope.as_str().map(str::to_owned)),
        }
    }

    /// Appends a page; the strictest cache hints apply.
    pub(crate) fn followed_by(mut self, page: Self) -> Self {
        self.items.extend(page.items);
        self.ttl_ms = match (self.ttl_ms, page.ttl_ms) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (Some(_), None) | (None, _) => None,
        };
        self.cache_scope = match (self.cache_scope.take(), page.cache_scope) {
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
            let list = ListResult::of_page(vec![1], first.0, first.1);
            let list = list.followed_by(ListResult::of_page(vec![2], second.0, second.1));
            let seen = (list.ttl_ms, list.cache_scope.as_deref());
            assert_eq!(seen, expected, "{first:?} {second:?}");
            assert_eq!(list[..], [1, 2]);
        }
    }
}
