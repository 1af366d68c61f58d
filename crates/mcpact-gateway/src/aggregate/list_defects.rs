//! Defects of the list of a server: items and pages that are left out.

use std::borrow::Cow;
use std::collections::HashSet;

use mcpact_config::{listed, shortened};
use mcpact_wire::raw::{JsonKind, Object, elements};

use super::list_kind::ListKind;
use super::merge::Page;
use super::rewrite::edit;

/// Reasons why parts of a list are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListDefects {
    /// Number of items that are not objects.
    not_objects: usize,
    /// Number of items without a name or URI, and of skills with an invalid manifest.
    unnamed: usize,
    /// Names or URIs that occur more than once.
    duplicates: Vec<Box<str>>,
    /// Description of an incomplete end of the pages.
    end: Option<String>,
}

impl ListDefects {
    /// Checks the pages of a list; returns its valid items and its defects.
    pub(crate) fn check<'p>(
        kind: ListKind,
        pages: impl Iterator<Item = &'p str>,
    ) -> (Vec<&'p str>, Self) {
        let method = kind.method();
        let (mut items, mut defects) = (Vec::new(), Self::default());
        let (mut known, mut cursors) = (HashSet::new(), HashSet::new());
        for (raw, number) in pages.zip(1_usize..) {
            let Some(page) = Page::parse(kind, raw) else {
                defects.end = Some(format!(
                    "page {number} of `{method}` has no array `{}`; it and later pages are left out",
                    kind.member()
                ));
                break;
            };
            for item in page.items {
                let Ok(object) = Object::parse(item) else {
                    defects.not_objects += 1;
                    continue;
                };
                match valid_key(kind, &object) {
                    None => defects.unnamed += 1,
                    Some(key) if known.contains(&key) => {
                        defects.duplicates.push(Box::from(&*key));
                    }
                    Some(key) => {
                        known.insert(key);
                        items.push(item);
                    }
                }
            }
            defects.end = match page.cursor {
                None => page.has_invalid_cursor.then(|| format!(
                    "the `nextCursor` on page {number} of `{method}` is not a string; later pages are left out"
                )),
                Some(next) if cursors.contains(&next) => {
                    // In a loop every item occurs again.
                    defects.duplicates.clear();
                    Some(format!(
                        "`{method}` repeats the cursor `{}` after {number} pages; later pages are left out",
                        shortened(&next)
                    ))
                }
                Some(next) => {
                    cursors.insert(next);
                    Some(format!(
                        "`{method}` has more than {number} pages; later pages are left out"
                    ))
                }
            };
        }
        (items, defects)
    }

    /// Returns the page without unnamed items and items that are not objects.
    pub(crate) fn valid_page<'p>(&self, kind: ListKind, page: &'p str) -> Cow<'p, str> {
        if self.not_objects + self.unnamed == 0 {
            return Cow::Borrowed(page);
        }
        let kept = edit(page, kind.member(), |_| {
            let items = Page::parse(kind, page)?.items;
            let named = |item: &&str| {
                Object::parse(item).is_ok_and(|item| valid_key(kind, &item).is_some())
            };
            let kept: Vec<&str> = items.into_iter().filter(named).collect();
            Some(format!("[{}]", kept.join(",")))
        });
        kept.map_or(Cow::Borrowed(page), Cow::Owned)
    }

    /// Describes the parts that are left out; none for a list without defects.
    pub(crate) fn describe(&self, kind: ListKind) -> Option<String> {
        let method = kind.method();
        let lacking = match kind {
            ListKind::Skills => String::from("valid manifest"),
            _ => format!("`{}`", kind.key()),
        };
        let mut items = Vec::new();
        match self.not_objects {
            0 => {}
            1 => items.push(String::from("1 item that is not an object")),
            more => items.push(format!("{more} items that are not objects")),
        }
        match self.unnamed {
            0 => {}
            1 => items.push(format!("1 item without a {lacking}")),
            more => items.push(format!("{more} items without a {lacking}")),
        }
        if !self.duplicates.is_empty() {
            let names: Vec<Cow<'_, str>> =
                self.duplicates.iter().map(|key| shortened(key)).collect();
            let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            items.push(format!("duplicates of {}", listed("", &names)));
        }
        let items =
            (!items.is_empty()).then(|| format!("left out of `{method}`: {}", items.join(", ")));
        let defects: Vec<String> = items.into_iter().chain(self.end.clone()).collect();
        (!defects.is_empty()).then(|| defects.join("; "))
    }
}

/// Returns the name or URI of a valid item.
fn valid_key<'a>(kind: ListKind, item: &Object<'a>) -> Option<Cow<'a, str>> {
    let key = item.get_str(kind.key())?;
    (kind != ListKind::Skills || is_valid_skill(item)).then_some(key)
}

/// Returns true for a skill that hosts may load (`ext-skills stable skills#skill-entries`). A client may refuse a whole list
/// because of one that is invalid.
fn is_valid_skill(skill: &Object<'_>) -> bool {
    let has_texts = |raw: Option<&str>, keys: [&str; 2]| {
        let object = raw.and_then(|raw| Object::parse(raw).ok());
        object.is_some_and(|object| keys.iter().all(|key| object.get_str(key).is_some()))
    };
    let has_size = |file: &str| {
        let file = Object::parse(file).unwrap_or_default();
        let size = file.get("size").map(JsonKind::of);
        size == Some(JsonKind::Number)
    };
    let is_file = |file: &str| has_texts(Some(file), ["uri", "digest"]) && has_size(file);
    let files = skill.get("resources").unwrap_or_default();
    let has_files = || elements(files).is_ok_and(|files| files.into_iter().all(is_file));
    has_texts(skill.get("frontmatter"), ["name", "description"])
        && (files == r#""dynamic""# || has_files())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked<'p>(pages: &[&'p str]) -> (Vec<&'p str>, Option<String>) {
        let (items, defects) = ListDefects::check(ListKind::Tools, pages.iter().copied());
        (items, defects.describe(ListKind::Tools))
    }

    /// Valid items are used; the description lists the others.
    #[test]
    fn invalid_items_are_left_out_and_described() {
        let (one, two) = (r#"{"name":"one"}"#, r#"{"name":"two"}"#);
        assert_eq!(
            checked(&[r#"{"tools":[{"name":"one"}]}"#]),
            (vec![one], None)
        );
        let mixed =
            r#"{"tools":[{"name":"one"},{"name":"one"},{"name":5},{},"x",7,{"name":"two"}]}"#;
        let (items, description) = checked(&[mixed]);
        assert_eq!(items, [one, two]);
        assert_eq!(
            description.unwrap(),
            "left out of `tools/list`: 2 items that are not objects, 2 items without a `name`, duplicates of `one`"
        );
        let (_, defects) = ListDefects::check(ListKind::Tools, [mixed].into_iter());
        assert_eq!(
            defects.valid_page(ListKind::Tools, mixed),
            r#"{"tools":[{"name":"one"},{"name":"one"},{"name":"two"}]}"#
        );
    }

    /// The pages of a list without an end are used, and the description says why reading stopped.
    #[test]
    fn incomplete_lists_are_described() {
        let again = r#"{"tools":[{"name":"one"}],"nextCursor":"a"}"#;
        let on = r#"{"tools":[{"name":"two"}],"nextCursor":"b"}"#;
        for (pages, items, words) in [
            (
                &[again, again][..],
                1,
                "repeats the cursor `a` after 2 pages",
            ),
            (&[again, on], 2, "more than 2 pages"),
            (
                &[again, r#"{"tools":[{"name":"two"}],"nextCursor":2}"#],
                2,
                "the `nextCursor` on page 2 of `tools/list` is not a string",
            ),
            (
                &[again, r#"{"tools":"none"}"#],
                1,
                "page 2 of `tools/list` has no array `tools`",
            ),
        ] {
            let (found, description) = checked(pages);
            assert_eq!(found.len(), items, "{pages:?}");
            let description = description.unwrap();
            assert!(description.contains(words), "{description}");
            assert!(!description.contains("duplicates"), "{description}");
        }
    }
}
