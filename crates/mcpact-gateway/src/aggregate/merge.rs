//! One list from the lists of several servers.

use std::collections::HashSet;
use std::fmt::Write;

use mcpact_wire::raw::{Object, elements};
use sha2::{Digest, Sha256};

use super::given::{Given, Origin};
use super::kind::ListKind;
use super::names::{NameStyle, Names};
use super::rewrite::{edit, quoted};
use super::uris::Uris;

/// The items of one server's list, and how long they hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// The position of the server.
    pub(crate) server: usize,
    /// Raw items in the client's words.
    pub(crate) items: Vec<Box<str>>,
    pub(crate) hint: CacheHint,
}

/// How long a page may be kept; by nobody but the client, whatever a server says: what is public at one
/// server may not be where several stand behind one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheHint {
    pub(crate) ttl_ms: u64,
}

impl CacheHint {
    /// What holds for both: AG-04.
    fn and(self, other: Self) -> Self {
        Self {
            ttl_ms: self.ttl_ms.min(other.ttl_ms),
        }
    }
}

/// A page of a server as it came.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) items: Vec<&'a str>,
    pub(crate) next: Next,
    pub(crate) hint: CacheHint,
}

/// What a page says of the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// There is none.
    Nothing,
    /// It is had with this cursor.
    Cursor(String),
    /// There is one, and nothing with which it could be had.
    OutOfReach,
}

impl Next {
    fn of(page: &Object<'_>) -> Self {
        match (page.get_present("nextCursor"), page.get_str("nextCursor")) {
            (None, _) => Self::Nothing,
            (Some(_), Some(cursor)) => Self::Cursor(cursor.into_owned()),
            // In every revision a cursor is a text.
            (Some(_), None) => Self::OutOfReach,
        }
    }

    /// The cursor with which the next page is had.
    pub(crate) fn cursor(self) -> Option<String> {
        match self {
            Self::Cursor(cursor) => Some(cursor),
            Self::Nothing | Self::OutOfReach => None,
        }
    }
}

impl<'a> Page<'a> {
    /// Reads the page of a list; none if it is no such thing.
    pub(crate) fn parse(kind: ListKind, raw: &'a str) -> Option<Self> {
        let result = Object::parse(raw).ok()?;
        let ttl = result.get("ttlMs").and_then(|raw| raw.parse().ok());
        Some(Self {
            items: elements(result.get(kind.member())?).ok()?,
            next: Next::of(&result),
            hint: CacheHint {
                ttl_ms: ttl.unwrap_or_default(),
            },
        })
    }
}

/// The merged list of one kind.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    items: Vec<Box<str>>,
    pub(crate) hint: CacheHint,
    /// Tells one state of the list from another.
    pub(crate) digest: [u8; 8],
}

/// Names the things in these lists, and others of the same servers.
pub(crate) fn names(
    parts: &[Part],
    besides: impl IntoIterator<Item = (usize, String)>,
    origins: &[Origin],
    style: &NameStyle,
    given: &mut Given,
) -> Names {
    let mut things: Vec<(usize, String)> = parts
        .iter()
        .flat_map(|part| part.items.iter().map(|item| (part.server, item)))
        .filter_map(|(server, item)| {
            let item = Object::parse(item).ok()?;
            Some((server, item.get_str("name")?.into_owned()))
        })
        .collect();
    things.extend(besides);
    // The first of two that would have the same name gets it, whatever anybody is shown.
    things.sort_by_key(|(server, _)| *server);
    let things = things.iter().map(|(server, name)| (*server, name.as_str()));
    Names::assign(style, given, origins, things)
}

/// Notes who has which address.
pub(crate) fn note_uris(kind: ListKind, parts: &[Part], uris: &mut Uris) {
    for part in parts {
        for item in &part.items {
            let item = Object::parse(item).unwrap_or_default();
            let Some(uri) = item.get_str(kind.key()) else {
                continue;
            };
            match kind {
                ListKind::Resources => uris.add_resource(part.server, &uri),
                ListKind::Templates => uris.add_template(part.server, &uri),
                ListKind::Tools | ListKind::Prompts => {}
            }
        }
    }
}

/// The list as a client sees it: servers in their order, items in each server's order.
pub(crate) fn merged(kind: ListKind, parts: &[Part], names: &Names, uris: &Uris) -> Merged {
    let mut items = Vec::new();
    let mut known = HashSet::new();
    let mut digest = Sha256::new();
    for part in parts {
        for item in &part.items {
            let Some((key, shown)) = show(kind, part.server, item, names, uris) else {
                continue;
            };
            // A server that lists a thing twice has it once.
            if known.insert(key) {
                digest.update(&*shown);
                items.push(shown);
            }
        }
    }
    let hints = parts.iter().map(|part| part.hint);
    Merged {
        items,
        hint: hints.reduce(CacheHint::and).unwrap_or_default(),
        digest: first_eight(&digest.finalize()),
    }
}

fn first_eight(digest: &[u8]) -> [u8; 8] {
    let mut out = [0; 8];
    for (to, from) in out.iter_mut().zip(digest) {
        *to = *from;
    }
    out
}

/// An item under the name or address that clients use.
fn show(
    kind: ListKind,
    server: usize,
    item: &str,
    names: &Names,
    uris: &Uris,
) -> Option<(String, Box<str>)> {
    let key = Object::parse(item).ok()?.get_str(kind.key())?.into_owned();
    let shown = match kind {
        ListKind::Tools | ListKind::Prompts => names.shown(server, &key)?.to_owned(),
        ListKind::Resources | ListKind::Templates => uris.shown(server, &key).into_owned(),
    };
    let mut item = if shown == key {
        item.to_owned()
    } else {
        edit(item, kind.key(), |_| Some(quoted(&shown)))?
    };
    if kind == ListKind::Tools {
        item = with_shown_view(&item, server, uris).unwrap_or(item);
    }
    Some((shown, item.into_boxed_str()))
}

/// A tool that has a view names the view's address, which is shown like any other.
fn with_shown_view(tool: &str, server: usize, uris: &Uris) -> Option<String> {
    let show = |raw: &str| {
        let uri = mcpact_wire::scan::text(raw)?;
        let shown = uris.shown(server, &uri);
        (shown != uri).then(|| quoted(&shown))
    };
    edit(tool, "_meta", |meta| {
        edit(meta, "ui", |ui| edit(ui, "resourceUri", show))
    })
}

/// A cursor that is not ours, or of a list that has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownCursor;

impl Merged {
    /// The names or addresses of what is in it.
    pub(crate) fn keys(&self, kind: ListKind) -> Vec<String> {
        let key = |item: &str| Some(Object::parse(item).ok()?.get_str(kind.key())?.into_owned());
        self.items.iter().filter_map(|item| key(item)).collect()
    }

    /// One page, as the members of a result without its braces.
    pub(crate) fn page(
        &self,
        kind: ListKind,
        cursor: Option<&str>,
        size: usize,
    ) -> Result<String, UnknownCursor> {
        let start = match cursor {
            None => 0,
            Some(cursor) => self.position(cursor).ok_or(UnknownCursor)?,
        };
        let items = self.items.get(start..).unwrap_or_default();
        let page = &items[..items.len().min(size.max(1))];
        let bytes: usize = page.iter().map(|item| item.len() + 1).sum();
        let mut out = String::with_capacity(bytes + 128);
        let _ = write!(out, "\"{}\":[", kind.member());
        for (at, item) in page.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(item);
        }
        out.push(']');
        let end = start + page.len();
        if end < self.items.len() {
            let _ = write!(out, ",\"nextCursor\":\"{}-{end}\"", self.mark());
        }
        Ok(out)
    }

    fn mark(&self) -> String {
        self.digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn position(&self, cursor: &str) -> Option<usize> {
        let (mark, position) = cursor.rsplit_once('-')?;
        let position: usize = position.parse().ok()?;
        (mark == self.mark() && position < self.items.len()).then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(server: usize, items: &[&str]) -> Part {
        Part {
            server,
            items: items.iter().map(|item| Box::from(*item)).collect(),
            hint: CacheHint::default(),
        }
    }

    fn named(parts: &[Part]) -> Names {
        let origins = ["a", "b"].map(|name| Origin {
            name: Box::from(name),
            prefix: Box::from(name),
        });
        let (style, mut given) = (NameStyle::default(), Given::default());
        names(parts, [], &origins, &style, &mut given)
    }

    fn tools(parts: &[Part]) -> Merged {
        let names = named(parts);
        merged(ListKind::Tools, parts, &names, &Uris::new(["a", "b"]))
    }

    /// AG-01: in order, under unique names, everything else untouched.
    #[test]
    fn lists_are_joined_in_order() {
        let parts = [
            part(0, &[r#"{"name":"x","inputSchema":{ "type":"object"}}"#]),
            part(
                1,
                &[r#"{"name":"x"}"#, r#"{"name":"w"}"#, r#"{"name":"w"}"#],
            ),
        ];
        let merged = tools(&parts);
        assert_eq!(
            merged.page(ListKind::Tools, None, 10).unwrap(),
            r#""tools":[{"name":"a__x","inputSchema":{ "type":"object"}},{"name":"b__x"},{"name":"b__w"}]"#
        );
    }

    /// AG-03: every page leads to the next; a cursor of another list is refused.
    #[test]
    fn pages_cover_the_list_once() {
        let items: Vec<String> = (0..25).map(|n| format!(r#"{{"name":"t{n}"}}"#)).collect();
        let items: Vec<&str> = items.iter().map(String::as_str).collect();
        let merged = tools(&[part(0, &items)]);
        let (mut cursor, mut seen) = (None::<String>, 0);
        loop {
            let page = merged.page(ListKind::Tools, cursor.as_deref(), 10).unwrap();
            let page = format!("{{{page}}}");
            let page = Page::parse(ListKind::Tools, &page).unwrap();
            seen += page.items.len();
            match page.next.cursor() {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, 25);
        let other = tools(&[part(0, &items[..20])]);
        let foreign = cursor.unwrap();
        for cursor in [foreign.as_str(), "", "x", "-", "ffffffffffffffff-10"] {
            let page = other.page(ListKind::Tools, Some(cursor), 10);
            assert_eq!(page, Err(UnknownCursor), "{cursor}");
        }
    }

    /// AG-04: the shortest time.
    #[test]
    fn the_strictest_hint_holds() {
        let mut parts = [part(0, &[]), part(1, &[])];
        parts[0].hint = CacheHint { ttl_ms: 5000 };
        parts[1].hint = CacheHint { ttl_ms: 1000 };
        assert_eq!(tools(&parts).hint, parts[1].hint);
    }

    /// AG-08: the same address at two servers is two addresses; views of tools go along.
    #[test]
    fn addresses_of_views_are_shown() {
        let resources = [
            part(0, &[r#"{"uri":"ui://v"}"#]),
            part(1, &[r#"{"uri":"ui://v"}"#]),
        ];
        let mut uris = Uris::new(["a", "b"]);
        note_uris(ListKind::Resources, &resources, &mut uris);
        let parts = [part(
            1,
            &[r#"{"name":"x","_meta":{"ui":{"resourceUri":"ui://v"}}}"#],
        )];
        let names = named(&parts);
        let merged = merged(ListKind::Tools, &parts, &names, &uris);
        assert_eq!(
            merged.page(ListKind::Tools, None, 10).unwrap(),
            r#""tools":[{"name":"b__x","_meta":{"ui":{"resourceUri":"mcpact://b/ui://v"}}}]"#
        );
    }
}
