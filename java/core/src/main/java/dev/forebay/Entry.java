package dev.forebay;

/** A key and its value. Two are equal only if they are the same object: arrays are compared by nothing else. */
public record Entry(byte[] key, byte[] value) {}
