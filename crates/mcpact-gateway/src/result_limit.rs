//! Limit for the results of calls: text beyond `max_result_bytes` is cut, and kept for a while as a resource of the caller.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytestring::ByteString;
use mcpact::server::backend::BackendRequest;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{Capability, Era, ErrorCode, Feature, Method};
use mcpact_transport::budget::{Charge, MemoryBudget, MemoryExhausted};
use mcpact_wire::raw::{Object, ObjectWriter, elements};
use tokio::time::Instant;

use crate::aggregate::rewrite::{edit, quoted};
use crate::connection::ownership::ClientRef;
use crate::downstream::sink::ClientSink;
use crate::error::wire_error;
use crate::reason::Reason;
use crate::sync::lock;
use crate::target::hex;

/// URIs of kept texts.
const SCHEME: &str = "mcpact://results/";

/// Maximum number of kept texts.
const MAX_TEXTS: usize = 64;

/// Maximum number of bytes of all kept texts.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Time for which a text is kept.
const MAX_AGE: Duration = Duration::from_secs(600);

/// Room for the note and the link in a cut result.
const ROOM: usize = 512;

/// Texts of cut results, each readable by its caller.
#[derive(Clone, Debug, Default)]
pub struct KeptResults(Arc<Mutex<VecDeque<KeptText>>>);

/// Caller of a request.
#[derive(Clone, Debug, PartialEq)]
enum Caller {
    /// Principal or connection; empty for modern clients without one, whose texts only the random URI protects.
    Owner(Box<str>),
    /// Legacy session of an anonymous client.
    Session(ClientRef),
}

impl Caller {
    fn of(request: &BackendRequest, sink: &ClientSink) -> Self {
        match (sink.owner(), request.pact.revision().era()) {
            ("", Era::Legacy) => Self::Session(sink.client_ref()),
            (owner, _) => Self::Owner(owner.into()),
        }
    }
}

#[derive(Debug)]
struct KeptText {
    uri: String,
    owner: Caller,
    since: Instant,
    text: String,
    /// Its part of the memory budget.
    _charge: Charge,
}

impl KeptResults {
    /// Keeps a text; returns its URI, or none if it is too large or the budget has no room for it.
    fn keep(
        &self,
        budget: &'static MemoryBudget,
        owner: Caller,
        text: String,
        now: Instant,
    ) -> Option<String> {
        // Kept texts stay charged when messages need the memory, so they get a part of the budget only.
        let max_bytes = MAX_BYTES.min(budget.limit() / 4);
        let mut id = [0_u8; 16];
        getrandom::fill(&mut id)
            .ok()
            .filter(|()| text.len() <= max_bytes)?;
        let uri = format!("{SCHEME}{}", hex(&id));
        let mut all = lock(&self.0);
        all.retain(|kept| now < kept.since + MAX_AGE);
        let charge = loop {
            match budget.charge(text.len()) {
                Ok(charge) => break charge,
                Err(MemoryExhausted) => drop(all.pop_front()?),
            }
        };
        all.push_back(KeptText {
            uri: uri.clone(),
            owner,
            since: now,
            text,
            _charge: charge,
        });
        let mut bytes: usize = all.iter().map(|kept| kept.text.len()).sum();
        while all.len() > MAX_TEXTS || bytes > max_bytes {
            bytes -= all.pop_front().map_or(0, |kept| kept.text.len());
        }
        Some(uri)
    }

    fn text(&self, uri: &str, reader: &Caller, now: Instant) -> Option<String> {
        let mut all = lock(&self.0);
        all.retain(|kept| now < kept.since + MAX_AGE);
        let found = all
            .iter()
            .find(|kept| kept.uri == uri && kept.owner == *reader);
        found.map(|kept| kept.text.clone())
    }

    /// Answers a request for a kept text.
    pub(crate) fn read(&self, request: &BackendRequest, sink: &ClientSink) -> Option<ByteString> {
        if request.method != Some(Method::ResourcesRead) {
            return None;
        }
        let uri = Object::parse(&request.params).ok()?.get_str("uri")?;
        if !uri.starts_with(SCHEME) {
            return None;
        }
        let text = self.text(&uri, &Caller::of(request, sink), Instant::now())?;
        let contents = ObjectWriter::new().text("uri", &uri);
        let contents = contents.text("mimeType", "text/plain").text("text", &text);
        let contents = format!("[{}]", contents.finish());
        let result = ObjectWriter::new().raw("contents", &contents);
        let result = match request.pact.revision().era() {
            Era::Legacy => result,
            Era::Modern => {
                let result = result.text("resultType", "complete").raw("ttlMs", "0");
                result.text("cacheScope", "private")
            }
        };
        Some(result.finish().into())
    }

    /// Cuts the text of a result with more than `limit` bytes.
    ///
    /// # Errors
    /// The result is too large without its text.
    pub(crate) fn limited(
        &self,
        limit: usize,
        request: &BackendRequest,
        sink: &ClientSink,
        raw: ByteString,
    ) -> Result<ByteString, WireError> {
        let is_call = matches!(
            request.method,
            Some(Method::ToolsCall | Method::TasksResult)
        );
        if limit == 0 || raw.len() <= limit || !is_call {
            return Ok(raw);
        }
        let pact = &request.pact;
        let keep = |text| {
            // Without the capability the client may not read resources.
            let is_readable = pact.declares(Capability::Resources);
            let budget = MemoryBudget::process();
            is_readable
                .then(|| self.keep(budget, Caller::of(request, sink), text, Instant::now()))?
        };
        match cut(
            &raw,
            limit,
            pact.revision().has(Feature::ResourceLinks),
            keep,
        ) {
            Ok(cut) => Ok(cut.map_or(raw, Into::into)),
            Err(TooLarge(rest)) => {
                let why = format!(
                    "the result has {} bytes, {rest} of them in content that is never cut; `max_result_bytes` is {limit}. \
                     The call may have had its effect",
                    raw.len()
                );
                let reason = Reason::UpstreamTooLong.as_str();
                let data = ObjectWriter::new().text("reason", reason).finish();
                let code = ErrorCode::InternalError.code();
                Err(wire_error(code, why, Some(data), pact.revision()))
            }
        }
    }
}

/// Size of a result without its text.
#[derive(Debug, PartialEq, Eq)]
struct TooLarge(usize);

/// Returns the result with less text; none if it has no content. `keep` keeps the whole text and returns its URI.
fn cut(
    raw: &str,
    limit: usize,
    has_links: bool,
    keep: impl FnOnce(String) -> Option<String>,
) -> Result<Option<String>, TooLarge> {
    let result = Object::parse(raw).unwrap_or_default();
    let Some(Ok(blocks)) = result.get("content").map(elements) else {
        return Ok(None);
    };
    let texts: Vec<Option<Cow<'_, str>>> = blocks.iter().map(|block| text_of(block)).collect();
    let whole: Vec<&str> = texts.iter().flatten().map(|text| &**text).collect();
    let in_text: usize = whole.iter().map(|text| quoted(text).len()).sum();
    let rest = raw.len().saturating_sub(in_text);
    let Some(mut room) = limit.checked_sub(rest + ROOM) else {
        return Err(TooLarge(rest));
    };
    let mut kept = Vec::new();
    let (mut shown, mut is_cut) = (0, false);
    for (block, text) in blocks.iter().zip(&texts) {
        let Some(text) = text else {
            kept.push(Cow::Borrowed(*block));
            continue;
        };
        if is_cut {
            continue;
        }
        let start = start_of(text, room);
        is_cut = start.len() < text.len();
        room = room.saturating_sub(quoted(start).len());
        shown += start.len();
        let block = edit(block, "text", |_| Some(quoted(start)));
        kept.extend(block.map(Cow::Owned));
    }
    let (size, uri) = (
        whole.iter().map(|text| text.len()).sum::<usize>(),
        keep(whole.join("\n")),
    );
    let minutes = MAX_AGE.as_secs() / 60;
    let after = uri.as_ref().map_or_else(
        || String::from("the rest was not kept"),
        |uri| format!("the whole text can be read for {minutes} minutes as the resource {uri}"),
    );
    let note = format!("[truncated by the gateway: {shown} of {size} bytes; {after}]");
    let note = ObjectWriter::new().text("type", "text").text("text", &note);
    kept.push(Cow::Owned(note.finish()));
    if let Some(uri) = uri.filter(|_| has_links) {
        let link = ObjectWriter::new()
            .text("type", "resource_link")
            .text("uri", &uri);
        let link = link
            .text("name", "whole text")
            .text("mimeType", "text/plain");
        kept.push(Cow::Owned(link.finish()));
    }
    Ok(edit(raw, "content", |_| {
        Some(format!("[{}]", kept.join(",")))
    }))
}

fn text_of(block: &str) -> Option<Cow<'_, str>> {
    let block = Object::parse(block).ok()?;
    let is_text = block.get_str("type")? == "text";
    block.get_str("text").filter(|_| is_text)
}

/// Returns the start of a text that has at most this many bytes as JSON.
fn start_of(text: &str, room: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        used > room
    });
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(principal: &str) -> Caller {
        Caller::Owner(principal.into())
    }

    /// Text is cut at a character; other content and structured content stay whole, or the result is refused.
    #[test]
    fn only_text_is_cut() {
        let text = "ä\"\n".repeat(1000);
        let image = format!(r#"{{"type":"image","data":"{}"}}"#, "A".repeat(500));
        let structured = r#"{"b": [1, 2]}"#;
        let raw = format!(
            r#"{{"content":[{{"type":"text","text":{0},"_meta":{{}}}},{image},{{"type":"text","text":{0}}}],"structuredContent":{structured}}}"#,
            quoted(&text)
        );
        for (limit, has_links) in [(4096, true), (4097, false), (4098, true), (9000, true)] {
            let mut whole = String::new();
            let keep = |text: String| {
                whole = text;
                Some(format!("{SCHEME}1"))
            };
            let short = cut(&raw, limit, has_links, keep).unwrap().unwrap();
            assert!(
                short.len() <= limit && short.len() + 600 > limit,
                "{}",
                short.len()
            );
            assert!(
                short.contains(&image) && short.contains(structured),
                "{short}"
            );
            assert_eq!(short.contains("resource_link"), has_links, "{short}");
            let result = Object::parse(&short).unwrap();
            let blocks = elements(result.get("content").unwrap()).unwrap();
            assert!(text.starts_with(&*text_of(blocks[0]).unwrap()));
            assert!(short.contains("of 8000 bytes") && short.contains("mcpact://results/1"));
            assert_eq!(whole, format!("{text}\n{text}"));
        }
        let rest = raw.len() - 2 * quoted(&text).len();
        assert_eq!(cut(&raw, 1024, true, |_| None), Err(TooLarge(rest)));
        assert_eq!(
            cut(r#"{"resultType":"input_required"}"#, 1, true, |_| None),
            Ok(None)
        );
        let lost = cut(&raw, 4096, true, |_| None).unwrap().unwrap();
        assert!(
            lost.contains("not kept") && !lost.contains("resource_link"),
            "{lost}"
        );
    }

    static BUDGET: MemoryBudget = MemoryBudget::new(usize::MAX);

    /// Kept texts are charged to the memory budget. The oldest make room for a new one; if that is not enough, it is not
    /// kept.
    #[tokio::test]
    async fn kept_texts_are_charged() {
        static SMALL: MemoryBudget = MemoryBudget::new(4000);
        let (kept, now, ann) = (KeptResults::default(), Instant::now(), identity("ann"));
        let keep = |bytes: usize| kept.keep(&SMALL, ann.clone(), "x".repeat(bytes), now);
        let is_kept = |uri: &Option<String>| {
            let uri = uri.as_deref().unwrap();
            kept.text(uri, &ann, now).is_some()
        };
        let all = [300, 300, 300].map(keep);
        assert_eq!((SMALL.used(), all.iter().all(is_kept)), (900, true));
        let large = keep(600);
        let seen: Vec<bool> = all.iter().chain([&large]).map(is_kept).collect();
        assert_eq!(
            (SMALL.used(), &seen[..]),
            (900, &[false, false, true, true][..])
        );
        assert_eq!(keep(1001), None, "more than a quarter of the budget");
        let others = SMALL.charge(3100).unwrap();
        assert!(is_kept(&keep(800)));
        assert_eq!(SMALL.used(), 3900, "the oldest texts made room");
        let more = SMALL.charge(50).unwrap();
        assert_eq!(keep(950), None);
        drop((others, more));
        drop(kept);
        assert_eq!(SMALL.used(), 0);
    }

    /// A kept text has one reader, and is kept for a limited time, in limited number and size.
    #[tokio::test]
    async fn kept_texts_are_bounded() {
        let (kept, now) = (KeptResults::default(), Instant::now());
        let (ann, bob) = (identity("ann"), identity("bob"));
        let first = kept
            .keep(&BUDGET, ann.clone(), "first".into(), now)
            .unwrap();
        assert_eq!(kept.text(&first, &ann, now).as_deref(), Some("first"));
        assert_eq!(kept.text(&first, &bob, now), None);
        assert_eq!(kept.text(SCHEME, &ann, now), None);
        for _ in 1..MAX_TEXTS {
            kept.keep(&BUDGET, bob.clone(), String::new(), now).unwrap();
        }
        assert!(kept.text(&first, &ann, now).is_some());
        let second = kept
            .keep(&BUDGET, ann.clone(), "second".into(), now)
            .unwrap();
        assert_eq!(kept.text(&first, &ann, now), None, "too many");
        assert_eq!(
            kept.keep(&BUDGET, ann.clone(), "x".repeat(MAX_BYTES + 1), now),
            None
        );
        let large = kept
            .keep(&BUDGET, ann.clone(), "x".repeat(MAX_BYTES), now)
            .unwrap();
        assert_eq!(kept.text(&second, &ann, now), None, "too large");
        assert!(kept.text(&large, &ann, now).is_some());
        assert_eq!(kept.text(&large, &ann, now + MAX_AGE), None, "too old");
        assert!(lock(&kept.0).is_empty());
    }
}
