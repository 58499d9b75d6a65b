//! By whose keys a database is encrypted.

#[cfg(feature = "encryption")]
use std::fmt;
#[cfg(feature = "encryption")]
use std::sync::Arc;

#[cfg(feature = "encryption")]
use forebay_env::encryption::KeyProvider;

use super::Options;

/// Who has keys. It is shown as that.
#[cfg(feature = "encryption")]
#[derive(Clone)]
pub(crate) struct Provider(pub(crate) Arc<dyn KeyProvider>);

#[cfg(feature = "encryption")]
impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyProvider")
    }
}

impl Options {
    /// Encrypts all that is in files: a new database by data keys of its own, which are encrypted by a key of the
    /// provider's. One that was made so opens only with the provider of that key, and one that was made otherwise only
    /// without. Names, lengths and times of files are not hidden, nor is how many records a commit has;
    /// `docs/guide/encryption.md` tells the rest. Tables cannot have
    /// [`values_apart`](crate::TableBuilder::values_apart), and what snapshots alone hold of write buffers stays in
    /// memory.
    ///
    /// ```
    /// # let env = forebay::env::Env::simulated(forebay::env::fs::MemoryFs::new(), 1);
    /// use forebay::encryption::{Key, OneKey};
    /// use forebay::{Database, Options};
    ///
    /// # let bytes_of_the_key = [7; 32];
    /// let provider = std::sync::Arc::new(OneKey::new("2026", Key::new(bytes_of_the_key)));
    /// let options = Options::default().encryption(provider);
    /// # let options = options.env(env);
    /// let db = Database::open("/db", options)?;
    /// # Ok::<(), forebay::Error>(())
    /// ```
    #[cfg(feature = "encryption")]
    pub fn encryption(mut self, provider: Arc<dyn KeyProvider>) -> Self {
        self.key_provider = Some(Provider(provider));
        self
    }

    /// Whether it is to be encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        #[cfg(feature = "encryption")]
        return self.key_provider.is_some();
        #[cfg(not(feature = "encryption"))]
        false
    }
}
