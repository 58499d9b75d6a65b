//! What an encrypted database is opened with: its data keys, and who has the user's. The keys are drawn as the database
//! is made, and read as it is opened. See `docs/internals/encryption.md`.
//!
//! **Invariant:** nothing is encrypted by a data key before the key is in `FOREBAY.keys`, durably.

use std::path::Path;

use forebay_base::{Error, Result};
use forebay_env::Env;
use forebay_store::manifest::Superblock;
use forebay_store::salvage::Gaps;

#[cfg(feature = "encryption")]
pub(crate) use with::Encryption;
#[cfg(not(feature = "encryption"))]
pub(crate) use without::Encryption;

use crate::options::Options;

/// Where a new database is made, which gets this superblock: encrypted, where that is wanted.
pub(crate) fn begin(env: &Env, dir: &Path, options: &Options, superblock: &Superblock) -> Result<Env> {
    let fs = Encryption::begin(env, dir, options, superblock)?;
    debug_assert_eq!(fs.is_some(), superblock.is_encrypted, "the superblock tells");
    Ok(fs.map_or_else(|| env.clone(), |fs| Env { fs, ..env.clone() }))
}

/// Where a database is read that has this superblock: by its keys, if it is encrypted.
pub(crate) fn unlock(
    env: &Env,
    dir: &Path,
    options: &Options,
    superblock: &Superblock,
    gaps: &Gaps,
) -> Result<(Env, Option<Encryption>)> {
    match (superblock.is_encrypted, options.is_encrypted()) {
        (false, false) => Ok((env.clone(), None)),
        (true, true) => {
            let (fs, encryption) = Encryption::unlock(env, dir, options, superblock, gaps)?;
            Ok((Env { fs, ..env.clone() }, Some(encryption)))
        }
        (true, false) => Err(Error::invalid(format!(
            "{} is encrypted; open it by its key: with Options::encryption, of the crate's feature `encryption`, or the command's \
             --key-file",
            dir.display()
        ))),
        (false, true) => Err(Error::invalid(format!(
            "{} was made without encryption, and stays so; open it without Options::encryption, or --key-file, and copy \
             what it has to a new database that has it",
            dir.display()
        ))),
    }
}

#[cfg(not(feature = "encryption"))]
mod without {
    use std::path::Path;
    use std::sync::Arc;

    use forebay_base::{Error, Result};
    use forebay_env::{Env, FileSystem};
    use forebay_store::manifest::Superblock;
    use forebay_store::salvage::Gaps;

    use crate::options::Options;

    /// There is none in this build.
    pub(crate) enum Encryption {}

    impl Encryption {
        pub(super) fn begin(
            _: &Env,
            _: &Path,
            _: &Options,
            _: &Superblock,
        ) -> Result<Option<Arc<dyn FileSystem>>> {
            Ok(None)
        }

        pub(super) fn unlock(
            _: &Env,
            _: &Path,
            _: &Options,
            _: &Superblock,
            _: &Gaps,
        ) -> Result<(Arc<dyn FileSystem>, Self)> {
            Err(Error::bug("a build without encryption was asked for it"))
        }

        pub(crate) fn vouch(&self, _: &dyn FileSystem, _: &Path) -> Result<()> {
            match *self {}
        }

        pub(crate) fn newest(&self) -> u32 {
            match *self {}
        }

        pub(crate) fn encrypt_answer(&self, _: Vec<u8>) -> Result<Vec<u8>> {
            match *self {}
        }

        pub(crate) fn decrypt_answer(&self, _: &[u8]) -> Result<Vec<u8>> {
            match *self {}
        }
    }
}

#[cfg(feature = "encryption")]
mod with {
    use std::path::Path;
    use std::sync::Arc;

    use forebay_base::{Error, Result};
    use forebay_env::encryption::{Damage, DataKeys, EncryptedFs, KeyProvider, Reload};
    use forebay_env::sync::Mutex;
    use forebay_env::{Env, FileSystem};
    use forebay_store::manifest::{AppendError, KeyFile, Superblock};
    use forebay_store::names;
    use forebay_store::salvage::Gaps;

    use crate::options::Options;

    /// See the module.
    pub(crate) struct Encryption {
        pub(crate) keys: Arc<DataKeys>,
        provider: Arc<dyn KeyProvider>,
        /// The bytes of the superblock, for which the key file vouches.
        superblock: Vec<u8>,
        /// The key file that was read does so.
        is_vouched: bool,
        /// Held by who replaces the key file.
        replacing: Mutex<()>,
    }

    /// What the tag of a writer's answer to a reader vouches for.
    const ANSWER: &[u8] = b"answer";

    fn remove_left(env: &Env, dir: &Path, name: &str) -> Result<()> {
        let path = dir.join(name);
        if env.fs.exists(&path)? { env.fs.remove(&path) } else { Ok(()) }
    }

    impl Encryption {
        /// Draws the first data key, and makes the key file of a database that is about to be made.
        pub(super) fn begin(
            env: &Env,
            dir: &Path,
            options: &Options,
            superblock: &Superblock,
        ) -> Result<Option<Arc<dyn FileSystem>>> {
            let Some(provider) = &options.key_provider else {
                // Of one whose making was interrupted.
                [names::KEYS, names::KEYS_SPARE]
                    .into_iter()
                    .try_for_each(|name| remove_left(env, dir, name))?;
                return Ok(None);
            };
            let keys = DataKeys::new(env)?;
            debug_assert_eq!((keys.newest(), keys.count()), (1, 1), "a database begins with one");
            let file = KeyFile { wrapped: keys.wrap(&*provider.0, &superblock.encode())? };
            file.write(&*env.fs, dir).map_err(AppendError::into_cause)?;
            Ok(Some(EncryptedFs::new(Arc::clone(&env.fs), keys, Damage::IsAnError)))
        }

        /// Reads the data keys.
        pub(super) fn unlock(
            env: &Env,
            dir: &Path,
            options: &Options,
            superblock: &Superblock,
            gaps: &Gaps,
        ) -> Result<(Arc<dyn FileSystem>, Self)> {
            let provider = options.key_provider.as_ref().map(|provider| Arc::clone(&provider.0));
            let provider = provider.ok_or_else(|| Error::bug("nobody has the keys"))?;
            let file = KeyFile::read(&*env.fs, dir)?;
            let reload = options.read_only.then(|| {
                let (fs, dir) = (Arc::clone(&env.fs), dir.to_path_buf());
                Box::new(move || KeyFile::read(&*fs, &dir).map(|file| file.wrapped)) as Reload
            });
            let keys =
                DataKeys::unwrap(env, &file.wrapped, &provider, reload).map_err(|error| match error {
                    Error::Invalid(reason) => {
                        Error::invalid(format!("{} is encrypted: {reason}", dir.display()))
                    }
                    error => error,
                })?;
            match file.vouch(dir, superblock) {
                // Lists may be read by it all the same.
                Err(error)
                    if options.salvage && gaps.pass_over(&dir.join(names::SUPERBLOCK), &error, None) => {}
                vouched => vouched?,
            }
            let damage = if options.salvage { Damage::Zeros } else { Damage::IsAnError };
            let fs = EncryptedFs::new(Arc::clone(&env.fs), Arc::clone(&keys), damage);
            let (superblock, is_vouched) = (superblock.encode(), !file.wrapped.vouched.is_empty());
            Ok((fs, Self { keys, provider, superblock, is_vouched, replacing: Mutex::default() }))
        }

        /// Lets the key file of an older build vouch for the superblock, too: what is changed from here on is noticed.
        /// Each data key stays encrypted by the provider's key that it has: to change that is for its user. Where there is
        /// no room for it, or the provider refuses, the next opening does.
        pub(crate) fn vouch(&self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
            if self.is_vouched {
                return Ok(());
            }
            let _alone = self.replacing.lock();
            let older = KeyFile::read(fs, dir)?;
            debug_assert_eq!(older.wrapped.keys.len(), self.keys.count(), "none is drawn before it is open");
            let Ok(wrapped) = self.keys.wrap_again(&older.wrapped, &*self.provider, &self.superblock) else {
                return Ok(());
            };
            match (KeyFile { wrapped }).write(fs, dir) {
                // There is no room, or the file would be too long.
                Err(AppendError::Refused(error))
                    if error.is_no_space() || matches!(error, Error::Invalid(_)) =>
                {
                    Ok(())
                }
                written => written.map_err(AppendError::into_cause),
            }
        }

        /// The number of the newest data key.
        pub(crate) fn newest(&self) -> u32 {
            self.keys.newest()
        }

        /// Encrypts the data keys by the provider's current key.
        pub(crate) fn wrap(&self, fs: &dyn FileSystem, dir: &Path) -> Result<(), AppendError> {
            let _alone = self.replacing.lock();
            self.write(fs, dir)
        }

        /// The same, and what is written from here on is encrypted by a new data key.
        pub(crate) fn renew(&self, fs: &dyn FileSystem, dir: &Path) -> Result<(), AppendError> {
            let _alone = self.replacing.lock();
            let drawn = self.keys.draw().map_err(AppendError::Refused)?;
            debug_assert!(drawn > self.keys.newest(), "nothing is encrypted by it before it is in the file");
            self.write(fs, dir).inspect_err(|_| self.keys.forget(drawn))?;
            self.keys.begin(drawn);
            Ok(())
        }

        /// What a writer tells a reader of itself, as it stands in a file.
        pub(crate) fn encrypt_answer(&self, mut text: Vec<u8>) -> Result<Vec<u8>> {
            self.keys.encrypt_behind(0, ANSWER, &mut text)?;
            Ok(text)
        }

        /// The same again.
        pub(crate) fn decrypt_answer(&self, answer: &[u8]) -> Result<Vec<u8>> {
            self.keys.decrypt_whole(ANSWER, answer)?.ok_or_else(|| {
                Error::invalid("what a writer tells of itself was not encrypted by a key of this database")
            })
        }

        fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<(), AppendError> {
            let wrapped = self.keys.wrap(&*self.provider, &self.superblock).map_err(AppendError::Refused)?;
            KeyFile { wrapped }.write(fs, dir)
        }
    }
}
