//! What is wrong with a list of a server, so that something of it is left out.

use std::borrow::Cow;
use std::collections::HashSet;

use mcpact_config::{listed, shortened};
use mcpact_wire::raw::Object;

use super::kind::ListKind;
use super::merge::{Next, Page};
use super::rewrite::edit;

/// What of a list is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flaws {
    /// Items that are no objects.
    formless: usize,
    /// Items without what would tell them from others.
    nameless: usize,
    /// What stands in it more than once.
    twice: Vec<Box<str>>,
    end: End,
}

/// How a list ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum End {
    /// With its last page.
    #[default]
    Whole,
    /// Its cursors go in a circle.
    Circle { cursor: String, pages: usize },
    /// What comes after these pages cannot be asked for.
    OutOfReach { pages: usize },
    /// Nobody wanted to read on.
    Cut { pages: usize },
    /// This page is none.
    Unreadable { page: usize },
}

/// Items that can be shown, and what is wrong with the others.
#[derive(Debug, Default)]
pub(crate) struct Sifted<'p> {
    pub(crate) items: Vec<&'p str>,
    pub(crate) flaws: Flaws,
}

impl<'p> Sifted<'p> {
    /// Looks through the pages of a list.
    pub(crate) fn new(kind: ListKind, pages: impl Iterator<Item = &'p str>) -> Self {
        let mut sifted = Self::default();
        let (mut known, mut cursors) = (HashSet::new(), HashSet::new());
        for (at, raw) in pages.enumerate() {
            let Some(page) = Page::parse(kind, raw) else {
                sifted.flaws.end = End::Unreadable { page: at + 1 };
                break;
            };
            for item in page.items {
                sifted.take(kind, item, &mut known);
            }
            sifted.flaws.end = match page.next {
                Next::Nothing => End::Whole,
                Next::OutOfReach => End::OutOfReach { pages: at + 1 },
                Next::Cursor(next) if cursors.contains(&next) => End::Circle {
                    cursor: next,
                    pages: at + 1,
                },
                Next::Cursor(next) => {
                    cursors.insert(next);
                    End::Cut { pages: at + 1 }
                }
            };
        }
        if matches!(sifted.flaws.end, End::Circle { .. }) {
            // In a circle everything comes again.
            sifted.flaws.twice.clear();
        }
        sifted
    }

    fn take(&mut self, kind: ListKind, item: &'p str, known: &mut HashSet<Cow<'p, str>>) {
        let Ok(object) = Object::parse(item) else {
            self.flaws.formless += 1;
            return;
        };
        let Some(key) = object.get_str(kind.key()) else {
            self.flaws.nameless += 1;
            return;
        };
        if known.contains(&key) {
            self.flaws.twice.push(Box::from(&*key));
            return;
        }
        known.insert(key);
        self.items.push(item);
    }
}

impl Flaws {
    /// The page with nothing but items that can be read.
    pub(crate) fn without<'p>(&self, kind: ListKind, page: &'p str) -> Cow<'p, str> {
        if self.formless + self.nameless == 0 {
            return Cow::Borrowed(page);
        }
        let kept = edit(page, kind.member(), |_| {
            let items = Page::parse(kind, page)?.items;
            let named = |item: &&str| {
                Object::parse(item).is_ok_and(|item| item.get_str(kind.key()).is_some())
            };
            let kept: Vec<&str> = items.into_iter().filter(named).collect();
            Some(format!("[{}]", kept.join(",")))
        });
        kept.map_or(Cow::Borrowed(page), Cow::Owned)
    }

    /// What is left out, in words; none if nothing is.
    pub(crate) fn in_words(&self, kind: ListKind) -> Option<String> {
        let method = kind.method();
        let mut items = Vec::new();
        match self.formless {
            0 => {}
            1 => items.push(String::from("1 item that is no object")),
            more => items.push(format!("{more} items that are no objects")),
        }
        match self.nameless {
            0 => {}
            1 => items.push(format!("1 item without a `{}`", kind.key())),
            more => items.push(format!("{more} items without a `{}`", kind.key())),
        }
        if !self.twice.is_empty() {
            let names: Vec<Cow<'_, str>> = self.twice.iter().map(|name| shortened(name)).collect();
            let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            items.push(format!("what stands there again: {}", listed("", &names)));
        }
        let items = (!items.is_empty())
            .then(|| format!("of its `{method}` is left out: {}", items.join(", ")));
        let end = match &self.end {
            End::Whole => None,
            End::Circle { cursor, pages } => Some(format!(
                "its `{method}` does not end: after {pages} pages the cursor `{}` comes again, and is not followed",
                shortened(cursor)
            )),
            End::OutOfReach { pages } => Some(format!(
                "page {pages} of its `{method}` has a `nextCursor` that is no text; what follows is left out"
            )),
            End::Cut { pages } => Some(format!(
                "its `{method}` goes on after {pages} pages, which is too long; the rest is left out"
            )),
            End::Unreadable { page } => Some(format!(
                "page {page} of its `{method}` has no list `{}`; it and what follows is left out",
                kind.member()
            )),
        };
        let told: Vec<String> = items.into_iter().chain(end).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sifted<'p>(pages: &[&'p str]) -> (Vec<&'p str>, Option<String>) {
        let sifted = Sifted::new(ListKind::Tools, pages.iter().copied());
        (sifted.items, sifted.flaws.in_words(ListKind::Tools))
    }

    /// What can be used is, and what cannot be is told.
    #[test]
    fn what_is_left_out_is_told() {
        let (one, two) = (r#"{"name":"one"}"#, r#"{"name":"two"}"#);
        assert_eq!(
            sifted(&[r#"{"tools":[{"name":"one"}]}"#]),
            (vec![one], None)
        );
        let mixed =
            r#"{"tools":[{"name":"one"},{"name":"one"},{"name":5},{},"x",7,{"name":"two"}]}"#;
        let (items, told) = sifted(&[mixed]);
        assert_eq!(items, [one, two]);
        assert_eq!(
            told.unwrap(),
            "of its `tools/list` is left out: 2 items that are no objects, 2 items without a `name`, \
             what stands there again: `one`"
        );
        let flaws = Sifted::new(ListKind::Tools, [mixed].into_iter()).flaws;
        assert_eq!(
            flaws.without(ListKind::Tools, mixed),
            r#"{"tools":[{"name":"one"},{"name":"one"},{"name":"two"}]}"#
        );
    }

    /// A list that does not end is told, and what came of it is used.
    #[test]
    fn a_list_that_does_not_end_is_told() {
        let again = r#"{"tools":[{"name":"one"}],"nextCursor":"a"}"#;
        let on = r#"{"tools":[{"name":"two"}],"nextCursor":"b"}"#;
        for (pages, items, words) in [
            (
                &[again, again][..],
                1,
                "the cursor `a` comes again, and is not followed",
            ),
            (&[again, on], 2, "goes on after 2 pages"),
            (
                &[again, r#"{"tools":[{"name":"two"}],"nextCursor":2}"#],
                2,
                "page 2 of its `tools/list` has a `nextCursor` that is no text",
            ),
            (
                &[again, r#"{"tools":"none"}"#],
                1,
                "page 2 of its `tools/list` has no list `tools`",
            ),
        ] {
            let (found, told) = sifted(pages);
            assert_eq!(found.len(), items, "{pages:?}");
            let told = told.unwrap();
            assert!(told.contains(words) && !told.contains("again: "), "{told}");
        }
    }
}
