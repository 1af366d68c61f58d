//! Merged lists of several servers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use bytestring::ByteString;
use mcpact_spec::Era;
use mcpact_wire::raw::{Object, elements};
use sha2::{Digest, Sha256};

use super::list_kind::ListKind;
use super::name_registry::{NameRegistry, Origin};
use super::name_table::{NameFormat, NameTable};
use super::rewrite::{edit, edit_skill, edit_views, quoted};
use super::tool_search::ToolIndex;
use super::uri_table::UriTable;
use crate::target::hex;

/// Items of the list of one server, in the revision of the client.
#[derive(Debug, Default)]
pub(crate) struct ServerItems {
    pub(crate) items: Vec<ServerItem>,
    /// Cache lifetime; the scope is always private, since several servers share one URL.
    pub(crate) ttl_ms: u64,
}

/// Item of the list of one server.
#[derive(Debug)]
pub(crate) struct ServerItem {
    raw: ByteString,
    /// Name or URI; an item without one is left out.
    pub(crate) key: Option<Box<str>>,
    /// First public name or URI, and the item with it.
    public: OnceLock<(Box<str>, ByteString)>,
}

/// Items that a client is shown of one server.
#[derive(Debug)]
pub(crate) struct ListPart<'a> {
    /// Position of the server.
    pub(crate) server: usize,
    pub(crate) items: Vec<&'a ServerItem>,
    ttl_ms: u64,
}

impl ServerItems {
    /// Adds an item.
    pub(crate) fn push(&mut self, kind: ListKind, raw: ByteString) {
        let key = item_key(kind, &raw).map(String::into_boxed_str);
        let public = OnceLock::new();
        self.items.push(ServerItem { raw, key, public });
    }

    /// Returns all items as those of the server at this position.
    pub(crate) fn part(&self, server: usize) -> ListPart<'_> {
        ListPart {
            server,
            items: self.items.iter().collect(),
            ttl_ms: self.ttl_ms,
        }
    }
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

/// Form of the pages of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageFormat {
    pub(crate) kind: ListKind,
    /// Era of the client.
    pub(crate) era: Era,
    /// Number of items per page.
    pub(crate) size: usize,
}

/// List of all servers.
#[derive(Debug)]
pub(crate) struct MergedList {
    format: PageFormat,
    items: Vec<ByteString>,
    /// Cache lifetime: the shortest of all servers.
    ttl_ms: u64,
    /// Hash of the items, which cursors contain.
    digest: String,
    /// Encoded pages, built by the first request.
    pages: OnceLock<Vec<ByteString>>,
    /// List that clients are shown in search mode, built by the first request.
    reduced: OnceLock<Arc<Self>>,
    /// Index of the tools, built by the first search.
    index: OnceLock<ToolIndex>,
}

/// Assigns names to the items of these lists and to other items of the same servers.
pub(crate) fn assign_names(
    parts: &[ListPart<'_>],
    besides: impl IntoIterator<Item = (usize, String)>,
    origins: &[Origin],
    format: &NameFormat,
    registry: &mut NameRegistry,
) -> NameTable {
    let mut items: Vec<(usize, String)> = parts
        .iter()
        .flat_map(|part| part.items.iter().map(|item| (part.server, item)))
        .filter_map(|(server, item)| Some((server, String::from(&**item.key.as_ref()?))))
        .collect();
    items.extend(besides);
    // Of two conflicting items the one of the first server gets the name, shown to the client or not.
    items.sort_by_key(|(server, _)| *server);
    let items = items.iter().map(|(server, name)| (*server, name.as_str()));
    NameTable::assign(format, registry, origins, items)
}

/// Registers the URIs of resources and templates, of the views that tools name, and of the files of skills.
pub(crate) fn register_uris(kind: ListKind, parts: &[ListPart<'_>], uris: &mut UriTable) {
    for part in parts {
        for item in &part.items {
            if kind == ListKind::Tools {
                let _ = edit_views(&item.raw, |uri| {
                    uris.add_view(part.server, uri);
                    None
                });
                continue;
            }
            let Some(uri) = &item.key else {
                continue;
            };
            match kind {
                ListKind::Resources => uris.add_resource(part.server, uri),
                ListKind::Templates => uris.add_template(part.server, uri),
                ListKind::Skills => {
                    let root = uri.rsplit_once('/').map_or("", |(root, _)| root);
                    let _ = edit_skill(&item.raw, |file| {
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
    format: PageFormat,
    parts: &[ListPart<'_>],
    names: &NameTable,
    uris: &UriTable,
) -> MergedList {
    let mut items = Vec::new();
    let mut known = HashSet::new();
    for part in parts {
        for item in &part.items {
            let Some((key, item)) = item.public(format.kind, part.server, names, uris) else {
                continue;
            };
            // Duplicates are left out.
            if known.insert(key) {
                items.push(item);
            }
        }
    }
    let shortest_ttl = parts.iter().map(|part| part.ttl_ms).min();
    MergedList::new(format, items, shortest_ttl.unwrap_or_default())
}

/// Returns the name or URI of an item.
pub(crate) fn item_key(kind: ListKind, item: &str) -> Option<String> {
    Some(Object::parse(item).ok()?.get_str(kind.key())?.into_owned())
}

impl ServerItem {
    /// Returns the public name or URI, and the item with it.
    fn public<'a>(
        &'a self,
        kind: ListKind,
        server: usize,
        names: &'a NameTable,
        uris: &UriTable,
    ) -> Option<(Cow<'a, str>, ByteString)> {
        let key = self.key.as_deref()?;
        let public = match kind {
            ListKind::Tools | ListKind::Prompts => names.public_name(server, key)?.into(),
            ListKind::Resources | ListKind::Templates => uris.public_uri(server, key),
            ListKind::Skills => uris.public_skill(server, key)?.into(),
        };
        if let Some((known, item)) = self.public.get()
            && **known == *public
        {
            return Some((public, item.clone()));
        }
        let mut item = match public == key {
            true => self.raw.clone(),
            false if kind == ListKind::Skills => {
                edit_skill(&self.raw, |uri| uris.public_skill(server, uri))?.into()
            }
            false => edit(&self.raw, kind.key(), |_| Some(quoted(&public)))?.into(),
        };
        let mut has_view = false;
        if kind == ListKind::Tools {
            let public_view = |uri: &str| {
                has_view = true;
                match uris.public_uri(server, uri) {
                    Cow::Owned(public) => Some(public),
                    Cow::Borrowed(_) => None,
                }
            };
            item = edit_views(&item, public_view).map_or(item, ByteString::from);
        }
        // The URIs in other items depend on the lists of all servers.
        if kind != ListKind::Skills && !has_view {
            let _ = self.public.set((Box::from(&*public), item.clone()));
        }
        Some((public, item))
    }
}

impl MergedList {
    fn new(format: PageFormat, items: Vec<ByteString>, ttl_ms: u64) -> Self {
        let mut digest = Sha256::new();
        items.iter().for_each(|item| digest.update(&**item));
        Self {
            format,
            items,
            ttl_ms,
            digest: hex(&digest.finalize()[..8]),
            pages: OnceLock::new(),
            reduced: OnceLock::new(),
            index: OnceLock::new(),
        }
    }

    /// Returns the list with these items before those of these names, and without all others. They must be the same for
    /// each call.
    pub(crate) fn reduced(&self, first: &[&'static str], names: &[String]) -> Arc<Self> {
        let reduce = || {
            let kept = self.items.iter().filter(|item| {
                let key = item_key(self.format.kind, item);
                key.is_some_and(|key| names.contains(&key))
            });
            let first = first.iter().map(|item| ByteString::from_static(item));
            let items = first.chain(kept.cloned()).collect();
            Arc::new(Self::new(self.format, items, self.ttl_ms))
        };
        Arc::clone(self.reduced.get_or_init(reduce))
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

    /// Returns the result with one page; none for the cursor of another list, or of an earlier state of this list.
    pub(crate) fn page(&self, cursor: Option<&str>) -> Option<ByteString> {
        let start = match cursor {
            None => 0,
            Some(cursor) => self.position(cursor)?,
        };
        let (size, count) = (self.format.size.max(1), self.items.len());
        let starts = || (0..count.max(1)).step_by(size);
        let all = || starts().map(|start| self.encode(start)).collect();
        let pages: &Vec<ByteString> = self.pages.get_or_init(all);
        let known = pages.get(start / size).filter(|_| start % size == 0);
        // The gateway gives out no other positions.
        Some(known.cloned().unwrap_or_else(|| self.encode(start)))
    }

    /// Encodes the result with the page that starts here.
    fn encode(&self, start: usize) -> ByteString {
        let PageFormat { kind, era, size } = self.format;
        let items = self.items.get(start..).unwrap_or_default();
        let page = &items[..items.len().min(size.max(1))];
        let length: usize = page.iter().map(|item| item.len() + 1).sum();
        let mut out = String::with_capacity(length + 128);
        out.push_str(match era {
            Era::Legacy => "{",
            Era::Modern => "{\"resultType\":\"complete\",",
        });
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
            let _ = write!(out, ",\"nextCursor\":\"{}-{end}\"", self.digest);
        }
        if era == Era::Modern {
            let ttl = self.ttl_ms;
            let _ = write!(out, ",\"ttlMs\":{ttl},\"cacheScope\":\"private\"");
        }
        out.push('}');
        out.into()
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

    const FORMAT: PageFormat = PageFormat {
        kind: ListKind::Tools,
        era: Era::Legacy,
        size: 10,
    };

    fn items(kind: ListKind, items: &[&str]) -> ServerItems {
        let mut all = ServerItems::default();
        for item in items {
            all.push(kind, ByteString::from(*item));
        }
        all
    }

    fn named(parts: &[ListPart<'_>]) -> NameTable {
        let origins = ["a", "b"].map(|name| Origin {
            name: Box::from(name),
            prefix: Box::from(name),
        });
        let (format, mut registry) = (NameFormat::default(), NameRegistry::default());
        assign_names(parts, [], &origins, &format, &mut registry)
    }

    fn tools(servers: &[ServerItems]) -> MergedList {
        let parts: Vec<_> = servers
            .iter()
            .enumerate()
            .map(|(at, of)| of.part(at))
            .collect();
        let names = named(&parts);
        merge(FORMAT, &parts, &names, &UriTable::new(["a", "b"]))
    }

    /// AG-01: items are in order under unique names and otherwise unchanged.
    #[test]
    fn lists_are_merged_in_order() {
        let first = [r#"{"name":"x","inputSchema":{ "type":"object"}}"#];
        let second = [r#"{"name":"x"}"#, r#"{"name":"w"}"#, r#"{"name":"w"}"#];
        let servers = [&first[..], &second].map(|of| items(ListKind::Tools, of));
        // The second list uses the encoded items of the first one.
        for merged in [tools(&servers), tools(&servers)] {
            assert_eq!(
                merged.page(None).unwrap(),
                r#"{"tools":[{"name":"a__x","inputSchema":{ "type":"object"}},{"name":"b__x"},{"name":"b__w"}]}"#
            );
        }
    }

    /// AG-03: pages cover the list once; a cursor of another list is rejected.
    #[test]
    fn pages_cover_the_list_once() {
        let all: Vec<String> = (0..25).map(|n| format!(r#"{{"name":"t{n}"}}"#)).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let merged = tools(&[items(ListKind::Tools, &all)]);
        let (mut cursor, mut seen) = (None::<String>, 0);
        loop {
            let page = merged.page(cursor.as_deref()).unwrap();
            let page = Page::parse(ListKind::Tools, &page).unwrap();
            seen += page.items.len();
            match page.cursor {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, 25);
        let unaligned = merged.page(Some(&format!("{}-7", merged.digest)));
        let unaligned = unaligned.unwrap();
        let page = Page::parse(ListKind::Tools, &unaligned).unwrap();
        assert_eq!(
            (page.items.len(), page.items[0]),
            (10, all[7].replace('t', "a__t").as_str())
        );
        let other = tools(&[items(ListKind::Tools, &all[..20])]);
        let foreign = cursor.unwrap();
        for cursor in [foreign.as_str(), "", "x", "-", "ffffffffffffffff-10"] {
            assert_eq!(other.page(Some(cursor)), None, "{cursor}");
        }
    }

    /// AG-04: the merged list has the shortest cache lifetime.
    #[test]
    fn shortest_ttl_is_used() {
        let servers = [5000, 1000].map(|ttl_ms| ServerItems {
            ttl_ms,
            ..ServerItems::default()
        });
        assert_eq!(tools(&servers).ttl_ms, 1000);
    }

    /// AG-08: a URI of two servers gets two public URIs; tools refer to the right one.
    #[test]
    fn tools_refer_to_public_view_uris() {
        let resource = items(ListKind::Resources, &[r#"{"uri":"ui://v"}"#]);
        let tool =
            r#"{"name":"x","_meta":{"ui":{"resourceUri":"ui://v"},"ui/resourceUri":"ui://v"}}"#;
        let tool = items(ListKind::Tools, &[tool]);
        let parts = [tool.part(1)];
        let names = named(&parts);
        let page = |owners: &[usize]| {
            let mut uris = UriTable::new(["a", "b"]);
            for at in owners {
                register_uris(ListKind::Resources, &[resource.part(*at)], &mut uris);
            }
            merge(FORMAT, &parts, &names, &uris).page(None).unwrap()
        };
        let with_uri = |uri: &str| {
            let meta = format!(r#"{{"ui":{{"resourceUri":"{uri}"}},"ui/resourceUri":"{uri}"}}"#);
            format!(r#"{{"tools":[{{"name":"b__x","_meta":{meta}}}]}}"#)
        };
        assert_eq!(page(&[1]), with_uri("ui://v"));
        assert_eq!(page(&[0, 1]), with_uri("ui://b/v"));
    }
}
