package dev.forebay.spark;

/** What a version is loaded for. */
enum Access {
    READ,
    WRITE
}
