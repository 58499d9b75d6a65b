package dev.forebay;

import java.math.BigDecimal;

/** A sale, as rows of tests are. Any value may be null. */
record Sale(String city, Integer day, Long moment, BigDecimal price, Long sold, Double rating) {}
