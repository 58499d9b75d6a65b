//! Keys of an encrypted database, as its user changes them, and how much is encrypted by which.

use forebay_base::{Error, Result};
use serde::Serialize;

use crate::Database;
use crate::context::Encryption;

/// By which data keys a database is encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EncryptionStats {
    /// How many data keys there are: those that were ever used.
    pub data_keys: usize,
    /// Bytes of lists and trees.
    pub bytes: u64,
    /// Of them, those that are encrypted by others than the newest data key.
    /// [`rewrite`](crate::Table::rewrite) of each table writes them anew.
    pub older_bytes: u64,
}

/// Of a database that was opened with [`Options::encryption`](crate::Options::encryption); the others refuse.
impl Database {
    /// Encrypts the data keys by the key that is the provider's [current](crate::encryption::KeyProvider::current) one.
    /// It takes the replacement of one short file. From then on the database can be opened without the keys that were
    /// current before; copies that were made before cannot.
    pub fn wrap_data_keys(&self) -> Result<()> {
        let encryption = self.encryption_to_change()?;
        let context = &self.engine().context;
        encryption.wrap(&*context.env.fs, &context.dir).map_err(|error| context.judge(error))
    }

    /// Draws a new data key. All that is written from here on is encrypted by it; what was written before stays as it
    /// is until it is written anew, as [`encryption_stats`](Self::encryption_stats) tells. The data keys are encrypted
    /// as by [`wrap_data_keys`](Self::wrap_data_keys).
    pub fn renew_data_key(&self) -> Result<()> {
        let encryption = self.encryption_to_change()?;
        let context = &self.engine().context;
        encryption.renew(&*context.env.fs, &context.dir).map_err(|error| context.judge(error))
    }

    /// How much is encrypted by which data keys. It reads the beginning of each list and tree.
    pub fn encryption_stats(&self) -> Result<EncryptionStats> {
        let (keys, engine) = (&self.encryption()?.keys, self.engine());
        let (newest, state, fs) = (keys.newest(), engine.versions.state(), &*engine.context.env.fs);
        let (mut bytes, mut older_bytes) = (0, 0);
        for file in state.files().filter(|file| !file.is_resident()) {
            let (path, length) = (file.path(), file.bytes());
            bytes += length;
            if fs.encrypted_as(&path)?.is_none_or(|(key, _)| key != newest) {
                older_bytes += length;
            }
        }
        debug_assert!(older_bytes <= bytes, "they are some of all");
        Ok(EncryptionStats { data_keys: keys.count(), bytes, older_bytes })
    }

    fn encryption(&self) -> Result<&Encryption> {
        let refuse = || Error::invalid("the database is not encrypted");
        self.engine().context.encryption.as_ref().ok_or_else(refuse)
    }

    fn encryption_to_change(&self) -> Result<&Encryption> {
        let encryption = self.encryption()?;
        self.engine().context.log()?;
        self.engine().context.check_open()?;
        Ok(encryption)
    }
}
