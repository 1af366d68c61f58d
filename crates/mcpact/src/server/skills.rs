//! Skills of a server: directories of files that are served as resources.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::model::{Resource, ResourceContents};

const SKILL_MD: &str = "SKILL.md";
const MARKDOWN: &str = "text/markdown";

/// Skill: a `SKILL.md` and its supporting files, under a URI whose last segment is the name of the skill.
#[derive(Clone, Debug)]
pub struct Skill {
    root: String,
    frontmatter: Map<String, Value>,
    instructions: String,
    files: Vec<SkillFile>,
}

impl Skill {
    /// Creates a skill at a directory such as `skill://acme/refunds`.
    #[must_use]
    pub fn new(
        root: impl Into<String>,
        description: impl Into<String>,
        instructions: impl Into<String>,
    ) -> Self {
        let root = root.into();
        let name = root.rsplit('/').next().unwrap_or_default();
        let mut frontmatter = Map::new();
        frontmatter.insert("name".to_owned(), name.into());
        frontmatter.insert("description".to_owned(), description.into().into());
        Self {
            root,
            frontmatter,
            instructions: instructions.into(),
            files: Vec::new(),
        }
    }

    /// Adds a field of the frontmatter, such as `license`.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.frontmatter.insert(name.into(), value.into());
        self
    }

    /// Adds a supporting file, at a path such as `templates/invoice.md`.
    #[must_use]
    pub fn file(
        mut self,
        path: &str,
        mime_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let uri = format!("{}/{path}", self.root);
        let name = path.rsplit('/').next().unwrap_or_default();
        self.files.push(SkillFile {
            resource: Resource::new(uri, name).mime_type(mime_type),
            text: text.into(),
        });
        self
    }

    /// Returns the `SKILL.md`. Every JSON value is also one of YAML.
    fn manual(&self) -> SkillFile {
        let field = |name: &str| self.frontmatter.get(name).and_then(Value::as_str);
        let lines = self.frontmatter.iter();
        let lines: String = lines
            .map(|(key, value)| format!("{key}: {value}\n"))
            .collect();
        let resource = Resource::new(
            format!("{}/{SKILL_MD}", self.root),
            field("name").unwrap_or_default(),
        );
        let description = field("description").unwrap_or_default();
        SkillFile {
            resource: resource.description(description).mime_type(MARKDOWN),
            text: format!("---\n{lines}---\n\n{}\n", self.instructions),
        }
    }
}

/// File of a skill.
#[derive(Clone, Debug)]
pub(super) struct SkillFile {
    pub(super) resource: Resource,
    text: String,
}

impl SkillFile {
    pub(super) fn contents(&self) -> Vec<ResourceContents> {
        let contents = ResourceContents::text(&self.resource.uri, &self.text);
        let mime_type = self.resource.mime_type.clone();
        vec![contents.mime_type(mime_type.unwrap_or_default())]
    }

    fn entry(&self) -> Value {
        let mut digest = String::from("sha256:");
        for byte in Sha256::digest(&self.text) {
            let _ = write!(digest, "{byte:02x}");
        }
        json!({"uri": self.resource.uri, "digest": digest, "size": self.text.len()})
    }
}

/// Skills of a server with all their files.
#[derive(Debug, Default)]
pub(super) struct Skills {
    /// Entries of `skills/list`.
    pub(super) entries: Vec<SkillEntry>,
    files: Vec<SkillFile>,
}

/// Entry of a skill: its frontmatter, and the digest and size of each file.
#[derive(Debug, Serialize)]
pub(super) struct SkillEntry {
    uri: String,
    frontmatter: Map<String, Value>,
    resources: Vec<Value>,
}

impl Skills {
    /// Adds a skill; returns its `SKILL.md`, the only file that is listed as a resource.
    pub(super) fn add(&mut self, skill: Skill) -> SkillFile {
        let manual = skill.manual();
        let files = std::iter::once(&manual).chain(&skill.files);
        self.entries.push(SkillEntry {
            uri: manual.resource.uri.clone(),
            resources: files.map(SkillFile::entry).collect(),
            frontmatter: skill.frontmatter,
        });
        self.files.push(manual.clone());
        self.files.extend(skill.files);
        manual
    }

    pub(super) fn entry(&self, uri: &str) -> Option<&SkillEntry> {
        self.entries.iter().find(|entry| entry.uri == uri)
    }

    pub(super) fn file(&self, uri: &str) -> Option<&SkillFile> {
        self.files.iter().find(|file| file.resource.uri == uri)
    }

    /// Returns the direct children of a directory; none for anything else.
    pub(super) fn children(&self, directory: &str) -> Vec<Resource> {
        let mut children: Vec<Resource> = Vec::new();
        if !directory.contains("://") {
            return children;
        }
        for file in &self.files {
            let uri = &file.resource.uri;
            let Some(path) = uri
                .strip_prefix(directory)
                .and_then(|at| at.strip_prefix('/'))
            else {
                continue;
            };
            match path.split_once('/') {
                None => children.push(file.resource.clone()),
                Some((name, _)) => {
                    let uri = format!("{directory}/{name}");
                    if !children.iter().any(|child| child.uri == uri) {
                        children.push(Resource::new(uri, name).mime_type("inode/directory"));
                    }
                }
            }
        }
        children
    }
}
