//! What is left of encryption in a build without it: a type that no value has.

use forebay_base::Result;

use super::TRAILER_BYTES;

/// There are none.
#[derive(Debug)]
pub enum DataKeys {}

impl DataKeys {
    /// Never called.
    pub fn encrypt_frame(&self, _place: &[u8], _text: &mut [u8]) -> Result<[u8; TRAILER_BYTES]> {
        match *self {}
    }

    /// Never called.
    pub fn encrypt_behind(&self, _from: usize, _place: &[u8], _record: &mut Vec<u8>) -> Result<()> {
        match *self {}
    }

    /// Never called.
    pub fn decrypt_whole(&self, _place: &[u8], _stored: &[u8]) -> Result<Option<Vec<u8>>> {
        match *self {}
    }

    /// Never called.
    pub fn encrypt_again(
        &self,
        _place: &[u8],
        _text: &mut [u8],
        _trailer: &[u8],
    ) -> Result<[u8; TRAILER_BYTES]> {
        match *self {}
    }

    /// Never called.
    pub fn decrypt_frame(&self, _place: &[u8], _text: &mut [u8], _trailer: &[u8]) -> Result<bool> {
        match *self {}
    }
}
