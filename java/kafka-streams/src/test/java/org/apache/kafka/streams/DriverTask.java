package org.apache.kafka.streams;

/** The task of a test driver, which else ends with its folder. */
public final class DriverTask {
    private DriverTask() {}

    /** Closes it as a host does that ends in order. What the driver closes afterwards is without it. */
    public static void close(TopologyTestDriver driver) {
        driver.task.suspend();
        driver.task.prepareCommit(true);
        driver.task.postCommit(true);
        driver.task.closeClean();
        driver.task = null;
    }
}
