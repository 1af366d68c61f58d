//! Positions of the members that the protocol itself reads.

use mcpact_spec::tables::meta;

use crate::scan::{Cursor, KeyRecord, ScanError, ScanFault, SeenKeys};

/// A part of a message text; the empty span means that the member is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Returns whether the member is there at all.
    pub(crate) const fn is_there(self) -> bool {
        self.end > 0
    }

    pub(crate) fn of(self, text: &str) -> Option<&str> {
        (self.end > 0)
            .then(|| text.get(self.start as usize..self.end as usize))
            .flatten()
    }
}

/// The places of the reserved members of `_meta`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MetaSpans {
    pub(crate) whole: Span,
    pub(crate) protocol_version: Span,
    pub(crate) client_capabilities: Span,
    pub(crate) client_info: Span,
    pub(crate) log_level: Span,
    pub(crate) progress_token: Span,
    pub(crate) server_info: Span,
    pub(crate) subscription_id: Span,
    pub(crate) trace_parent: Span,
    /// True if `_meta` has members of which nothing is noted.
    pub(crate) has_others: bool,
}

/// The result of one scan: plain offsets, so that a message can be kept beside its bytes and
/// looked at again without a second scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub(crate) whole: Span,
    pub(crate) jsonrpc: Span,
    pub(crate) id: Span,
    pub(crate) method: Span,
    pub(crate) params: Span,
    pub(crate) result: Span,
    pub(crate) error: Span,
    pub(crate) name: Span,
    pub(crate) arguments: Span,
    pub(crate) uri: Span,
    pub(crate) task_id: Span,
    pub(crate) result_type: Span,
    /// True if `params` or `result` has members of which nothing is noted.
    pub(crate) has_others: bool,
    /// Member of `params`, or of its `_meta`, that stands twice. The id, which may come later, is needed to refuse it.
    pub(crate) doubled: Option<&'static str>,
    pub(crate) meta: MetaSpans,
    /// Keys in `result`, at any depth.
    pub(crate) seen: SeenKeys,
    /// True if no object in `params` has a key twice.
    pub(crate) is_clear: bool,
}

fn span(start: usize, end: usize) -> Result<Span, ScanError> {
    match (u32::try_from(start), u32::try_from(end)) {
        (Ok(start), Ok(end)) => Ok(Span { start, end }),
        _ => Err(ScanError {
            at: start,
            fault: ScanFault::Length,
        }),
    }
}

/// Notes where a member stands; a second one of the same name is refused.
fn note(
    cursor: &mut Cursor<'_>,
    slot: &mut Span,
    name: &'static str,
    step: impl FnOnce(&mut Cursor<'_>) -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    if *slot != Span::default() {
        return cursor.fail(ScanFault::Duplicate(name));
    }
    cursor.skip_space();
    let start = cursor.at();
    step(cursor)?;
    *slot = span(start, cursor.at())?;
    Ok(())
}

/// Notes where a member of a body stands, and whether it stands twice.
fn note_in_body(
    cursor: &mut Cursor<'_>,
    slot: &mut Span,
    doubled: &mut Option<&'static str>,
    name: &'static str,
    step: impl FnOnce(&mut Cursor<'_>) -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    if slot.is_there() {
        *doubled = Some(name);
        *slot = Span::default();
    }
    note(cursor, slot, name, step)
}

/// Steps over a value of which nothing is noted.
fn pass(depth: u32) -> impl Fn(&mut Cursor<'_>) -> Result<(), ScanError> {
    move |cursor| cursor.skip_value(depth)
}

impl Layout {
    /// Scans one message object, leaving the cursor behind it.
    pub(crate) fn scan(cursor: &mut Cursor<'_>) -> Result<Self, ScanError> {
        let mut found = Self::default();
        cursor.skip_space();
        let start = cursor.at();
        cursor.members(0, |cursor, key| match &*key {
            "jsonrpc" => note(cursor, &mut found.jsonrpc, "jsonrpc", pass(1)),
            "id" => note(cursor, &mut found.id, "id", pass(1)),
            "method" => note(cursor, &mut found.method, "method", pass(1)),
            "params" => {
                let mut slot = found.params;
                cursor.record(KeyRecord::of_repetitions());
                note(cursor, &mut slot, "params", |c| found.scan_body(c))?;
                found.params = slot;
                found.is_clear = !cursor.record(KeyRecord::default()).may_repeat();
                Ok(())
            }
            "result" => {
                let mut slot = found.result;
                cursor.record(KeyRecord::default());
                note(cursor, &mut slot, "result", |c| found.scan_body(c))?;
                found.result = slot;
                found.seen = cursor.record(KeyRecord::default()).seen();
                found
                    .doubled
                    .map_or(Ok(()), |name| cursor.fail(ScanFault::Duplicate(name)))
            }
            "error" => note(cursor, &mut found.error, "error", pass(1)),
            _ => cursor.skip_value(1),
        })?;
        found.whole = span(start, cursor.at())?;
        Ok(found)
    }

    /// Scans `params` or `result`.
    fn scan_body(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ScanError> {
        if cursor.next_byte()? != b'{' {
            return cursor.skip_value(1);
        }
        let found = self;
        cursor.members(1, |cursor, key| match &*key {
            "_meta" => {
                let mut slot = found.meta.whole;
                let mut doubled = found.doubled;
                note_in_body(cursor, &mut slot, &mut doubled, "_meta", |c| {
                    found.meta.scan(c, &mut found.doubled)
                })?;
                found.meta.whole = slot;
                found.doubled = doubled.or(found.doubled);
                Ok(())
            }
            key => {
                let (slot, name) = match key {
                    "name" => (&mut found.name, "name"),
                    "arguments" => (&mut found.arguments, "arguments"),
                    "uri" => (&mut found.uri, "uri"),
                    "taskId" => (&mut found.task_id, "taskId"),
                    "resultType" => (&mut found.result_type, "resultType"),
                    _ => {
                        found.has_others = true;
                        return cursor.skip_value(2);
                    }
                };
                note_in_body(cursor, slot, &mut found.doubled, name, pass(2))
            }
        })
    }
}

impl MetaSpans {
    fn scan(
        &mut self,
        cursor: &mut Cursor<'_>,
        doubled: &mut Option<&'static str>,
    ) -> Result<(), ScanError> {
        if cursor.next_byte()? != b'{' {
            return cursor.skip_value(2);
        }
        cursor.members(2, |cursor, key| {
            let (slot, name) = match &*key {
                meta::PROTOCOL_VERSION => (&mut self.protocol_version, meta::PROTOCOL_VERSION),
                meta::CLIENT_CAPABILITIES => {
                    (&mut self.client_capabilities, meta::CLIENT_CAPABILITIES)
                }
                meta::CLIENT_INFO => (&mut self.client_info, meta::CLIENT_INFO),
                meta::LOG_LEVEL => (&mut self.log_level, meta::LOG_LEVEL),
                meta::PROGRESS_TOKEN => (&mut self.progress_token, meta::PROGRESS_TOKEN),
                meta::SERVER_INFO => (&mut self.server_info, meta::SERVER_INFO),
                meta::SUBSCRIPTION_ID => (&mut self.subscription_id, meta::SUBSCRIPTION_ID),
                meta::TRACE_PARENT => (&mut self.trace_parent, meta::TRACE_PARENT),
                _ => {
                    self.has_others = true;
                    return cursor.skip_value(3);
                }
            };
            note_in_body(cursor, slot, doubled, name, pass(3))
        })
    }
}
