//! Merged lists of several servers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::OnceLock;

use mcpact_wire::raw::{Object, elements};
use sha2::{Digest, Sha256};

use super::list_kind::ListKind;
use super::name_registry::{NameRegistry, Origin};
use super::name_table::{NameFormat, NameTable};
use super::rewrite::{edit, edit_skill, edit_views, quoted};
use super::tool_search::ToolIndex;
use super::uri_table::UriTable;
use crate::target::hex;

/// Items of the list of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerItems {
    /// Position of the server.
    pub(crate) server: usize,
    /// Raw items in the revision of the client.
    pub(crate) items: Vec<Box<str>>,
    /// Cache lifetime; the scope is always private, since several servers share one URL.
    pub(crate) ttl_ms: u64,
}

/// Page of a list of a server.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) items: Vec<&'a str>,
    /// Cursor of the next page.
    pub(crate) cursor: Option<String>,
    /// True if the cursor is not a string.
    pub(crate) has_invalid_cursor: bool,
    pub(crate) ttl_ms: u64,
}

impl<'a> Page<'a> {
    /// Parses a page; none if it has no list.
    pub(crate) fn parse(kind: ListKind, raw: &'a str) -> Option<Self> {
        let result = Object::parse(raw).ok()?;
        let cursor = result.get_str("nextCursor").map(Cow::into_owned);
        let has_cursor = result.get_present("nextCursor").is_some();
        let ttl = result.get("ttlMs").and_then(|raw| raw.parse().ok());
        Some(Self {
            items: elements(result.get(kind.member())?).ok()?,
            has_invalid_cursor: has_cursor && cursor.is_none(),
            cursor,
            ttl_ms: ttl.unwrap_or_default(),
        })
    }
}

/// List of all servers.
#[derive(Debug, Default)]
pub(crate) struct MergedList {
    items: Vec<Box<str>>,
    /// Cache lifetime: the shortest of all servers.
    pub(crate) ttl_ms: u64,
    /// Hash of the items, which cursors contain.
    digest: String,
    /// Index of the tools, built by the first search.
    index: OnceLock<ToolIndex>,
}

/// Assigns names to the items of these lists and to other items of the same servers.
pub(crate) fn assign_names(
    parts: &[ServerItems],
    besides: impl IntoIterator<Item = (usize, String)>,
    origins: &[Origin],
    format: &NameFormat,
    registry: &mut NameRegistry,
) -> NameTable {
    let mut items: Vec<(usize, String)> = parts
        .iter()
        .flat_map(|part| part.items.iter().map(|item| (part.server, item)))
        .filter_map(|(server, item)| {
            let item = Object::parse(item).ok()?;
            Some((server, item.get_str("name")?.into_owned()))
        })
        .collect();
    items.extend(besides);
    // Of two conflicting items the one of the first server gets the name, shown to the client or not.
    items.sort_by_key(|(server, _)| *server);
    let items = items.iter().map(|(server, name)| (*server, name.as_str()));
    NameTable::assign(format, registry, origins, items)
}

/// Registers the URIs of resources and templates, of the views that tools name, and of the files of skills.
pub(crate) fn register_uris(kind: ListKind, parts: &[ServerItems], uris: &mut UriTable) {
    for part in parts {
        for item in &part.items {
            if kind == ListKind::Tools {
                let _ = edit_views(item, |uri| {
                    uris.add_view(part.server, uri);
                    None
                });
                continue;
            }
            let Some(uri) = item_key(kind, item) else {
                continue;
            };
            match kind {
                ListKind::Resources => uris.add_resource(part.server, &uri),
                ListKind::Templates => uris.add_template(part.server, &uri),
                ListKind::Skills => {
                    let root = uri.rsplit_once('/').map_or("", |(root, _)| root);
                    let _ = edit_skill(item, |file| {
                        uris.add_skill_file(part.server, root, file);
                        None
                    });
                }
                ListKind::Tools | ListKind::Prompts => {}
            }
        }
    }
}

/// Merges the lists: servers in their order, items in the order of each server.
pub(crate) fn merge(
    kind: ListKind,
    parts: &[ServerItems],
    names: &NameTable,
    uris: &UriTable,
) -> MergedList {
    let mut items = Vec::new();
    let mut known = HashSet::new();
    for part in parts {
        for item in &part.items {
            let Some((key, item)) = with_public_key(kind, part.server, item, names, uris) else {
                continue;
            };
            // Duplicates are left out.
            if known.insert(key) {
                items.push(item);
            }
        }
    }
    let shortest_ttl = parts.iter().map(|part| part.ttl_ms).min();
    MergedList::new(items, shortest_ttl.unwrap_or_default())
}

/// Returns the name or URI of an item.
pub(crate) fn item_key(kind: ListKind, item: &str) -> Option<String> {
    Some(Object::parse(item).ok()?.get_str(kind.key())?.into_owned())
}

/// Returns an item with its public name or URI, and that name or URI.
fn with_public_key(
    kind: ListKind,
    server: usize,
    item: &str,
    names: &NameTable,
    uris: &UriTable,
) -> Option<(String, Box<str>)> {
    let key = item_key(kind, item)?;
    let public = match kind {
        ListKind::Tools | ListKind::Prompts => names.public_name(server, &key)?.to_owned(),
        ListKind::Resources | ListKind::Templates => uris.public_uri(server, &key).into_owned(),
        ListKind::Skills => uris.public_skill(server, &key)?,
    };
    let mut item = match public == key {
        true => item.to_owned(),
        false if kind == ListKind::Skills => {
            edit_skill(item, |uri| uris.public_skill(server, uri))?
        }
        false => edit(item, kind.key(), |_| Some(quoted(&public)))?,
    };
    if kind == ListKind::Tools {
        let public = |uri: &str| match uris.public_uri(server, uri) {
            Cow::Owned(public) => Some(public),
            Cow::Borrowed(_) => None,
        };
        item = edit_views(&item, public).unwrap_or(item);
    }
    Some((public, item.into_boxed_str()))
}

impl MergedList {
    fn new(items: Vec<Box<str>>, ttl_ms: u64) -> Self {
        let mut digest = Sha256::new();
        items.iter().for_each(|item| digest.update(&**item));
        Self {
            items,
            ttl_ms,
            digest: hex(&digest.finalize()[..8]),
            index: OnceLock::new(),
        }
    }

    /// Returns the list with these items before those of these names, and without all others.
    pub(crate) fn reduced(&self, kind: ListKind, first: &[&str], names: &[String]) -> Self {
        let kept = self.items.iter().filter(|item| {
            let key = item_key(kind, item);
            key.is_some_and(|key| names.contains(&key))
        });
        let first = first.iter().map(|item| Box::from(*item));
        Self::new(first.chain(kept.cloned()).collect(), self.ttl_ms)
    }

    /// Returns the item with this public name or URI.
    pub(crate) fn item(&self, kind: ListKind, key: &str) -> Option<&str> {
        let mut items = self.items.iter().map(|item| &**item);
        items.find(|item| item_key(kind, item).is_some_and(|of| of == key))
    }

    /// Returns the tools that match a query best.
    pub(crate) fn search(&self, query: &str, limit: usize) -> impl Iterator<Item = &str> {
        let build = || ToolIndex::of(self.items.iter().map(|item| &**item));
        let found = self.index.get_or_init(build).search(query, limit);
        found
            .into_iter()
            .filter_map(|at| self.items.get(at).map(|item| &**item))
    }

    /// Returns the public names or URIs of the items.
    pub(crate) fn keys(&self, kind: ListKind) -> Vec<String> {
        let keys = self.items.iter().filter_map(|item| item_key(kind, item));
        keys.collect()
    }

    /// Returns the members of a result with one page, without braces; none for the cursor of another list, or of an
    /// earlier state of this list.
    pub(crate) fn page(&self, kind: ListKind, cursor: Option<&str>, size: usize) -> Option<String> {
        let start = match cursor {
            None => 0,
            Some(cursor) => self.position(cursor)?,
        };
        let items = self.items.get(start..).unwrap_or_default();
        let page = &items[..items.len().min(size.max(1))];
        let mut out = format!("\"{}\":[{}]", kind.member(), page.join(","));
        let end = start + page.len();
        if end < self.items.len() {
            let _ = write!(out, ",\"nextCursor\":\"{}-{end}\"", self.digest);
        }
        Some(out)
    }

    fn position(&self, cursor: &str) -> Option<usize> {
        let (digest, position) = cursor.rsplit_once('-')?;
        let position: usize = position.parse().ok()?;
        (digest == self.digest && position < self.items.len()).then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(server: usize, items: &[&str]) -> ServerItems {
        ServerItems {
            server,
            items: items.iter().map(|item| Box::from(*item)).collect(),
            ttl_ms: 0,
        }
    }

    fn named(parts: &[ServerItems]) -> NameTable {
        let origins = ["a", "b"].map(|name| Origin {
            name: Box::from(name),
            prefix: Box::from(name),
        });
        let (format, mut registry) = (NameFormat::default(), NameRegistry::default());
        assign_names(parts, [], &origins, &format, &mut registry)
    }

    fn tools(parts: &[ServerItems]) -> MergedList {
        let names = named(parts);
        merge(ListKind::Tools, parts, &names, &UriTable::new(["a", "b"]))
    }

    /// AG-01: items are in order under unique names and otherwise unchanged.
    #[test]
    fn lists_are_merged_in_order() {
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

    /// AG-03: pages cover the list once; a cursor of another list is rejected.
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
            match page.cursor {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, 25);
        let other = tools(&[part(0, &items[..20])]);
        let foreign = cursor.unwrap();
        for cursor in [foreign.as_str(), "", "x", "-", "ffffffffffffffff-10"] {
            let page = other.page(ListKind::Tools, Some(cursor), 10);
            assert_eq!(page, None, "{cursor}");
        }
    }

    /// AG-04: the merged list has the shortest cache lifetime.
    #[test]
    fn shortest_ttl_is_used() {
        let mut parts = [part(0, &[]), part(1, &[])];
        parts[0].ttl_ms = 5000;
        parts[1].ttl_ms = 1000;
        assert_eq!(tools(&parts).ttl_ms, 1000);
    }

    /// AG-08: a URI of two servers gets two public URIs; tools refer to the right one.
    #[test]
    fn tools_refer_to_public_view_uris() {
        let resources = [
            part(0, &[r#"{"uri":"ui://v"}"#]),
            part(1, &[r#"{"uri":"ui://v"}"#]),
        ];
        let mut uris = UriTable::new(["a", "b"]);
        register_uris(ListKind::Resources, &resources, &mut uris);
        let parts = [part(
            1,
            &[r#"{"name":"x","_meta":{"ui":{"resourceUri":"ui://v"},"ui/resourceUri":"ui://v"}}"#],
        )];
        let names = named(&parts);
        let merged = merge(ListKind::Tools, &parts, &names, &uris);
        assert_eq!(
            merged.page(ListKind::Tools, None, 10).unwrap(),
            r#""tools":[{"name":"b__x","_meta":{"ui":{"resourceUri":"ui://b/v"},"ui/resourceUri":"ui://b/v"}}]"#
        );
    }
}
