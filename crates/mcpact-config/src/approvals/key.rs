//! Random key of the user, so that a digest does not allow guessing the values that it covers.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::is_writable_by_all;

/// Number of bytes of a key.
const BYTES: usize = 32;

/// Key of keyed digests.
pub(super) struct DigestKey([u8; BYTES]);

impl DigestKey {
    /// Reads the key in a file, and creates it if there is none.
    pub(super) fn in_file(path: &Path) -> io::Result<Self> {
        match Self::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => create(path)?,
            read => return read,
        }
        Self::read(path)
    }

    fn read(path: &Path) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        let broken = |why| io::Error::other(format!("`{}` {why}", path.display()));
        if is_writable_by_all(path) {
            return Err(broken("is world-writable"));
        }
        let mut key = Vec::new();
        file.take(BYTES as u64 + 1).read_to_end(&mut key)?;
        let key = key
            .try_into()
            .map_err(|_| broken("is not a key; remove it, and approve again"))?;
        Ok(Self(key))
    }

    /// Keyed digest of a value. The length of a key is fixed, and half of the digest is dropped, so that no digest can be
    /// extended.
    pub(super) fn digest(&self, value: &[u8]) -> [u8; 16] {
        let digest = Sha256::new()
            .chain_update(self.0)
            .chain_update(value)
            .finalize();
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        half
    }
}

/// Creates a key. If another process creates one at the same time, the first one counts.
fn create(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        mcpact_transport::private_file::create_folder(folder)?;
    }
    let mut key = [0; BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let name = getrandom::u64().map_err(io::Error::other)?;
    let temporary = path.with_extension(format!("{name:016x}"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(&temporary)?;
    file.write_all(&key)?;
    file.sync_all()?;
    let linked = fs::hard_link(&temporary, path);
    let _ = fs::remove_file(&temporary);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
