//! Which tools of the server clients see and may call, at every address.

use std::sync::{Arc, PoisonError};

use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_wire::raw::{Object, elements};

use super::{Bridge, wire_error};
use crate::aggregate::kind::ListKind;
use crate::aggregate::rewrite::edit;
use crate::catalog::ToolFilter;

impl Bridge {
    /// From here on these tools are served, and no others.
    pub fn serve_tools(&self, tools: ToolFilter) {
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(tools);
    }

    fn tools(&self) -> Arc<ToolFilter> {
        Arc::clone(&self.tools.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn serves_everything(&self) -> bool {
        self.tools().is_open() && !self.shared.pins.hide_any()
    }

    /// Whether a thing of the server is served.
    pub(crate) fn serves(&self, kind: ListKind, name: &str) -> bool {
        match kind {
            ListKind::Tools => self.tools().admits(name) && !self.shared.pins.hide(name),
            ListKind::Prompts | ListKind::Resources | ListKind::Templates => true,
        }
    }

    /// Refuses a call of a tool that is not served; to the client it is one that does not exist.
    pub(super) fn check_served(
        &self,
        method: Option<Method>,
        params: &str,
        client: Revision,
    ) -> Result<(), WireError> {
        if method != Some(Method::ToolsCall) || self.serves_everything() {
            return Ok(());
        }
        let params = Object::parse(params).unwrap_or_default();
        let name = params.get_str("name").unwrap_or_default();
        if self.serves(ListKind::Tools, &name) {
            return Ok(());
        }
        let why = format!("Unknown tool: `{name}`. `tools/list` says what there is");
        let code = ErrorCode::InvalidParams.code();
        Err(wire_error(code, why, None, client))
    }

    /// A page of tools without those that are not served.
    pub(super) fn served_only(&self, method: Option<Method>, page: String) -> String {
        if method != Some(Method::ToolsList) || self.serves_everything() {
            return page;
        }
        let left = edit(&page, ListKind::Tools.member(), |raw| {
            let is_served = |tool: &&str| {
                let tool = Object::parse(tool).unwrap_or_default();
                let name = tool.get_str("name");
                name.is_some_and(|name| self.serves(ListKind::Tools, &name))
            };
            let served: Vec<&str> = elements(raw).ok()?.into_iter().filter(is_served).collect();
            Some(format!("[{}]", served.join(",")))
        });
        left.unwrap_or(page)
    }
}
