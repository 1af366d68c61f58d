//! Public URIs of resources over all servers.
//!
//! A URI of one server stays unchanged. A URI of several servers is qualified: `mcpact://SERVER/` followed by the original
//! URI, so that templates can still be expanded and routing needs no table. URIs that are qualified already, such as
//! those of another gateway, are always qualified again.
//!
//! Views and skills keep their scheme: `ui://v` of the server `a` becomes `ui://a/v`. Hosts accept no other scheme for views,
//! and the last segment of a skill is its name. Skills are always qualified, so that approvals stay valid when another
//! server gets the same skill.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};

use smallvec::{SmallVec, smallvec};

/// Prefix of qualified URIs.
const SCHEME: &str = "mcpact://";

/// Prefix of the URIs of views (`ext-apps 2026-01-26 apps#ui-resource-format`).
pub(crate) const VIEWS: &str = "ui://";

/// Prefix of the URIs that most skills have (`ext-skills stable skills#resource-mapping`).
const SKILLS: &str = "skill://";

/// Maximum number of remembered unlisted URIs; the oldest are evicted.
const MAX_MENTIONED: usize = 4096;

/// URIs and their servers, according to the lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct UriTable {
    servers: Vec<Box<str>>,
    /// Servers by listed URI.
    owners: HashMap<Box<str>, SmallVec<[usize; 1]>>,
    /// Literal prefix of each template with its server.
    templates: Vec<(Box<str>, usize)>,
}

/// Unqualified URIs in results, with the numbers of the servers that mentioned them.
#[derive(Debug, Default)]
pub(crate) struct MentionedUris {
    owners: HashMap<Box<str>, SmallVec<[u64; 1]>>,
    order: VecDeque<Box<str>>,
}

impl UriTable {
    /// Creates an empty table for these servers.
    pub(crate) fn new<'a>(servers: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            servers: servers.into_iter().map(Box::from).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn add_resource(&mut self, server: usize, uri: &str) {
        let owners = self.owners.entry(Box::from(uri)).or_default();
        if !owners.contains(&server) {
            owners.push(server);
        }
    }

    /// Adds the view of a tool, which need not be listed; ignores a URI that no view can have.
    pub(crate) fn add_view(&mut self, server: usize, uri: &str) {
        if uri.starts_with(VIEWS) {
            self.add_resource(server, uri);
        }
    }

    /// Adds a file of a skill, and its directories within the root of the skill.
    pub(crate) fn add_skill_file(&mut self, server: usize, root: &str, uri: &str) {
        self.add_resource(server, uri);
        let mut ends = uri.rmatch_indices('/').map(|(end, _)| end);
        while let Some(end) = ends.next().filter(|end| *end >= root.len()) {
            self.add_resource(server, &uri[..end]);
        }
    }

    pub(crate) fn add_template(&mut self, server: usize, template: &str) {
        self.add_resource(server, template);
        let fixed = template.split('{').next().unwrap_or_default();
        self.templates.push((Box::from(fixed), server));
    }

    /// Returns the public URI of a listed resource or template.
    pub(crate) fn public_uri<'a>(&self, server: usize, uri: &'a str) -> Cow<'a, str> {
        match self.servers.get(server) {
            Some(name) if !self.is_plain(server, uri, &[]) => Cow::Owned(qualified(name, uri)),
            Some(_) | None => Cow::Borrowed(uri),
        }
    }

    /// Returns the public URI of a file of a skill.
    pub(crate) fn public_skill(&self, server: usize, uri: &str) -> Option<String> {
        Some(in_scheme(self.servers.get(server)?, uri))
    }

    /// Returns true if the URI needs no qualification to be routed to this server. `mentioned` are the servers that mentioned
    /// the URI; they count only for unlisted URIs.
    pub(crate) fn is_plain(&self, server: usize, uri: &str, mentioned: &[usize]) -> bool {
        let owners = || self.owners(uri, mentioned);
        !is_reserved(uri) && self.named(uri).is_none() && owners().iter().all(|at| *at == server)
    }

    /// Returns the server and the original URI of a resource that is qualified in its scheme, if the server is known to have
    /// it.
    fn named<'a>(&self, uri: &'a str) -> Option<(usize, Cow<'a, str>)> {
        let (server, inner) = self.segment(uri)?;
        let owners = self.owners.get(&*inner)?;
        owners.contains(&server).then_some((server, inner))
    }

    /// Returns the server in the first segment of a URI, and the URI without it.
    pub(crate) fn segment<'a>(&self, uri: &'a str) -> Option<(usize, Cow<'a, str>)> {
        let (scheme, path) = uri.split_once("://")?;
        let (name, rest) = path.split_once('/')?;
        let server = self.servers.iter().position(|known| **known == *name)?;
        Some((server, Cow::Owned(format!("{scheme}://{rest}"))))
    }

    /// Returns the servers of an unqualified URI: by the lists, else by mentions, else by the templates.
    fn owners(&self, uri: &str, mentioned: &[usize]) -> SmallVec<[usize; 1]> {
        match (self.owners.get(uri), mentioned) {
            (Some(owners), _) => owners.clone(),
            (None, []) => self.by_template(uri),
            (None, mentioned) => SmallVec::from(mentioned),
        }
    }

    /// Returns the servers of a URI and the original URI. A qualified URI has the named server, or none if that is
    /// unknown.
    pub(crate) fn lookup<'a>(
        &self,
        uri: &'a str,
        mentioned: &[usize],
    ) -> (SmallVec<[usize; 1]>, Cow<'a, str>) {
        let Some(rest) = uri.strip_prefix(SCHEME) else {
            return match self.named(uri) {
                Some((server, inner)) => (smallvec![server], inner),
                None => (self.owners(uri, mentioned), Cow::Borrowed(uri)),
            };
        };
        let (name, inner) = rest.split_once('/').unwrap_or_default();
        match self.servers.iter().position(|known| **known == *name) {
            Some(server) => (smallvec![server], Cow::Borrowed(inner)),
            None => (SmallVec::new(), Cow::Borrowed(uri)),
        }
    }

    /// Returns the servers with the longest matching template prefix, in order.
    fn by_template(&self, uri: &str) -> SmallVec<[usize; 1]> {
        let all = self.templates.iter();
        let matching = all.filter(|(fixed, _)| uri.starts_with(&**fixed));
        let longest = matching.clone().map(|(fixed, _)| fixed.len()).max();
        let longest = matching.filter(|(fixed, _)| Some(fixed.len()) == longest);
        let servers: BTreeSet<usize> = longest.map(|(_, server)| *server).collect();
        servers.into_iter().collect()
    }
}

/// Returns true for a qualified URI, even of an unknown server.
pub(crate) fn is_qualified(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

/// Returns true for a URI that is never shown as it is.
pub(crate) fn is_reserved(uri: &str) -> bool {
    is_qualified(uri) || uri.starts_with(SKILLS)
}

/// Returns the qualified form of a URI.
pub(crate) fn qualified(server: &str, uri: &str) -> String {
    match uri.starts_with(VIEWS) || uri.starts_with(SKILLS) {
        true => in_scheme(server, uri),
        false => format!("{SCHEME}{server}/{uri}"),
    }
}

/// Returns the qualified form of a URI that keeps its scheme and its last segments.
pub(crate) fn in_scheme(server: &str, uri: &str) -> String {
    match uri.split_once("://") {
        Some((scheme, path)) => format!("{scheme}://{server}/{path}"),
        None => format!("{SCHEME}{server}/{uri}"),
    }
}

impl MentionedUris {
    /// Returns the servers that mentioned a URI, in order.
    pub(crate) fn owners(&self, uri: &str) -> &[u64] {
        self.owners.get(uri).map_or(&[], SmallVec::as_slice)
    }

    /// Records that a result of a server mentioned a URI.
    pub(crate) fn record(&mut self, server: u64, uri: &str) {
        if let Some(owners) = self.owners.get_mut(uri) {
            if !owners.contains(&server) {
                owners.push(server);
            }
            return;
        }
        self.owners.insert(Box::from(uri), smallvec![server]);
        self.order.push_back(Box::from(uri));
        if self.order.len() > MAX_MENTIONED
            && let Some(oldest) = self.order.pop_front()
        {
            self.owners.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uris() -> UriTable {
        let mut uris = UriTable::new(["a", "b"]);
        uris.add_resource(0, "test://one");
        uris.add_resource(0, "test://both");
        uris.add_resource(1, "test://both");
        uris.add_template(0, "note://{id}");
        uris.add_template(1, "note://deep/{id}");
        uris.add_template(0, "same://{x}");
        uris.add_template(1, "same://{x}");
        // As listed by another gateway.
        uris.add_resource(1, "mcpact://a/test://one");
        uris.add_template(1, "mcpact://zzz/{x}");
        uris
    }

    /// AG-08: URIs of two servers are qualified, others stay unchanged; both are routed to their server.
    #[test]
    fn public_uris_are_routed_to_their_server() {
        let uris = uris();
        let cells = [
            (0, "test://one", "test://one"),
            (0, "test://both", "mcpact://a/test://both"),
            (1, "test://both", "mcpact://b/test://both"),
            // Listed by the other server only.
            (1, "test://one", "mcpact://b/test://one"),
            (1, "mcpact://a/x", "mcpact://b/mcpact://a/x"),
            (
                1,
                "mcpact://a/test://one",
                "mcpact://b/mcpact://a/test://one",
            ),
            (1, "mcpact://zzz/{x}", "mcpact://b/mcpact://zzz/{x}"),
            (1, "same://{x}", "mcpact://b/same://{x}"),
        ];
        for (server, uri, shown) in cells {
            assert_eq!(uris.public_uri(server, uri), shown);
            let found = uris.lookup(shown, &[]);
            assert_eq!(found, (smallvec![server], Cow::Borrowed(uri)), "{shown}");
        }
    }

    #[test]
    fn unlisted_uris_are_routed_by_mentions_and_templates() {
        let uris = uris();
        let cells = [
            ("note://7", &[][..], Some(0)),
            ("note://deep/7", &[], Some(1)),
            ("other://7", &[], None),
            ("other://7", &[1], Some(1)),
            ("same://7", &[1], Some(1)),
            ("mcpact://zzz/other://1", &[], None),
        ];
        for (uri, mentioned, server) in cells {
            let servers = server.into_iter().collect();
            assert_eq!(uris.lookup(uri, mentioned), (servers, uri.into()), "{uri}");
        }
    }

    /// AG-08: an unqualified URI of several servers is ambiguous.
    #[test]
    fn ambiguous_uris_have_several_servers() {
        let uris = uris();
        for uri in ["test://both", "same://7", "same://{x}"] {
            let forms = ["a", "b"].map(|server| qualified(server, uri));
            assert_eq!(uris.lookup(uri, &[]), (smallvec![0, 1], uri.into()));
            for (server, form) in forms.iter().enumerate() {
                let found = (smallvec![server], uri.into());
                assert_eq!(uris.lookup(form, &[]), found, "{form}");
            }
        }
    }

    /// AG-08: a mentioned URI stays unchanged for the first server unless a template of another server matches; it is
    /// ambiguous once several servers mentioned it.
    #[test]
    fn mentioned_uris_are_routed_to_their_server() {
        let uris = uris();
        let cells = [
            (0, "note://7", &[][..], true),
            (1, "note://7", &[], false),
            (0, "same://7", &[], false),
            (1, "same://7", &[1], true),
            (0, "other://7", &[], true),
            (0, "other://7", &[0], true),
            (0, "other://7", &[1], false),
            (0, "other://7", &[0, 1], false),
        ];
        for (server, uri, mentioned, is_plain) in cells {
            assert_eq!(
                uris.is_plain(server, uri, mentioned),
                is_plain,
                "{server} {uri}"
            );
        }
        let mut mentioned = MentionedUris::default();
        mentioned.record(7, "other://7");
        mentioned.record(8, "other://7");
        mentioned.record(7, "other://7");
        assert_eq!(mentioned.owners("other://7"), [7, 8]);
        let found = uris.lookup("other://7", &[1, 0]);
        assert_eq!(found, (smallvec![1, 0], "other://7".into()));
    }

    /// Views of two servers keep their scheme. A URI that looks like the qualified one of another view is qualified too.
    #[test]
    fn qualified_views_keep_their_scheme() {
        let mut uris = UriTable::new(["a", "b"]);
        for (server, uri) in [
            (0, "ui://v"),
            (1, "ui://v"),
            (1, "ui://a/v"),
            (0, "ui://a/w"),
        ] {
            uris.add_resource(server, uri);
        }
        let cells = [
            (0, "ui://v", "ui://a/v"),
            (1, "ui://v", "ui://b/v"),
            (1, "ui://a/v", "ui://b/a/v"),
            (0, "ui://a/w", "ui://a/w"),
        ];
        for (server, uri, shown) in cells {
            assert_eq!(uris.public_uri(server, uri), shown);
            for shown in [shown, &format!("mcpact://{}/{uri}", ["a", "b"][server])] {
                let found = uris.lookup(shown, &[]);
                assert_eq!(found, (smallvec![server], uri.into()), "{shown}");
            }
        }
        assert_eq!(
            uris.lookup("ui://v", &[]),
            (smallvec![0, 1], "ui://v".into())
        );
    }

    #[test]
    fn mentioned_uris_are_bounded() {
        let mut mentioned = MentionedUris::default();
        for number in 0..MAX_MENTIONED + 10 {
            mentioned.record(0, &format!("x://{number}"));
        }
        assert_eq!(
            (mentioned.owners.len(), mentioned.order.len()),
            (MAX_MENTIONED, MAX_MENTIONED)
        );
        assert_eq!(mentioned.owners("x://0"), [0; 0]);
        assert_eq!(mentioned.owners("x://20"), [0]);
    }
}
