//! The bytes of a connection: as they come, or encrypted.
//!
//! **Invariant:** a read that says `WouldBlock` has left nothing, neither in the socket nor in what was decrypted: so the
//! next event tells of more.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;

use rustls::ServerConnection;

use super::socket::Socket;
use crate::tls::{Tls, UNSENT_BYTES_MAX};

/// Until the handshake is done a client may send so much.
const HANDSHAKE_BYTES_MAX: usize = 24 << 10;
/// What one takes that is encrypted and silent.
const ENCRYPTED_BYTES: usize = 8 << 10;
/// So much that says nothing, at a time: a record has less than 18 KiB, and none has to be empty.
const IDLE_BYTES_MAX: usize = 128 << 10;

/// See the module.
pub(super) struct Stream {
    pub(super) socket: Socket,
    tls: Option<Box<ServerConnection>>,
    /// What has come of the handshake.
    pub(super) handshake_bytes: usize,
}

fn wrong(text: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text.into())
}

impl Stream {
    pub(super) fn new(socket: Socket, tls: Option<&Tls>) -> io::Result<Self> {
        let tls = tls.map(Tls::connection).transpose().map_err(|error| wrong(error.to_string()))?;
        Ok(Self { socket, tls: tls.map(Box::new), handshake_bytes: 0 })
    }

    /// What it is made of, for who has it from here on.
    pub(super) fn into_parts(self) -> (Socket, Option<Box<ServerConnection>>) {
        (self.socket, self.tls)
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether requests may come: a handshake is done, or is not asked for.
    pub(super) fn is_open(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.is_handshaking())
    }

    /// Bytes that were taken, and the socket has not taken.
    pub(super) fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let unsent = if self.has_unsent() { UNSENT_BYTES_MAX } else { 0 };
        if self.is_encrypted() { ENCRYPTED_BYTES + unsent } else { 0 }
    }

    /// Reads what there is; nothing once the other side has ended.
    pub(super) fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        let mut idle_bytes = 0;
        loop {
            let Some(tls) = &mut self.tls else { return self.socket.read(chunk) };
            match tls.reader().read(chunk) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            let bytes = tls.read_tls(&mut self.socket)?;
            if bytes == 0 {
                return Ok(0);
            }
            idle_bytes += bytes;
            if tls.is_handshaking() {
                self.handshake_bytes += bytes;
            }
            let processed = tls.process_new_packets();
            // The other side is told what was wrong, if it takes that.
            let flushed = self.flush();
            processed.map_err(|error| wrong(error.to_string()))?;
            flushed
                .or_else(|error| if error.kind() == ErrorKind::WouldBlock { Ok(()) } else { Err(error) })?;
            if !self.is_open() && self.handshake_bytes > HANDSHAKE_BYTES_MAX || idle_bytes > IDLE_BYTES_MAX {
                return Err(wrong("too much that says nothing"));
            }
        }
    }

    /// Takes what the socket takes, and a bit more that it takes later.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let Some(tls) = &mut self.tls else { return self.socket.write(bytes) };
        let taken = tls.writer().write(bytes)?;
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Has the socket take all that was taken.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Says that nothing more comes, so that nobody takes a cut for the end.
    pub(super) fn finish(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = self.flush();
        }
    }

    /// Ends it from this side, and reads what came meanwhile: else the other side might lose what was sent to it.
    pub(super) fn say_goodbye(&mut self, chunk: &mut [u8], bytes_max: usize) {
        let _ = self.socket.shutdown(Shutdown::Write);
        let mut left = bytes_max;
        while let Ok(bytes @ 1..) = self.socket.read(chunk) {
            left = left.saturating_sub(bytes);
            if left == 0 {
                return;
            }
        }
    }
}
