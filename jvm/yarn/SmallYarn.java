import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * Runs a YARN cluster in one process: a ResourceManager and two NodeManagers.
 *
 * <p>The argument is a directory. It gets the configuration files that a client of the cluster needs.
 */
public final class SmallYarn {
    private static final int NODES = 2;
    private static final int MEGABYTES = 3072;
    private static final int SMALLEST_MEGABYTES = 256;
    private static final int CORES = 8;

    private SmallYarn() {
    }

    public static void main(String[] arguments) throws Exception {
        YarnConfiguration settings = new YarnConfiguration();
        settings.setInt(YarnConfiguration.NM_PMEM_MB, MEGABYTES);
        settings.setInt(YarnConfiguration.NM_VCORES, CORES);
        settings.setInt(YarnConfiguration.RM_SCHEDULER_MINIMUM_ALLOCATION_MB, SMALLEST_MEGABYTES);
        settings.setBoolean(YarnConfiguration.NM_VMEM_CHECK_ENABLED, false);
        settings.setBoolean(YarnConfiguration.NM_PMEM_CHECK_ENABLED, false);
        // By default, YARN does not use a disk that is nine tenths full.
        settings.setFloat(YarnConfiguration.NM_MAX_PER_DISK_UTILIZATION_PERCENTAGE, 100f);
        settings.set("yarn.scheduler.capacity.root.queues", "default");
        settings.set("yarn.scheduler.capacity.root.default.capacity", "100");
        settings.set("yarn.scheduler.capacity.maximum-am-resource-percent", "0.9");
        MiniYARNCluster cluster = new MiniYARNCluster("yarn", NODES, 1, 1);
        cluster.init(settings);
        cluster.start();
        Configuration known = new Configuration(cluster.getConfig());
        known.set("fs.defaultFS", "file:///");
        for (String name : new String[] {"core-site.xml", "yarn-site.xml"}) {
            try (OutputStream file = Files.newOutputStream(Path.of(arguments[0], name))) {
                known.writeXml(file);
            }
        }
        System.out.println("ready: http://" + known.get(YarnConfiguration.RM_WEBAPP_ADDRESS));
        Thread.currentThread().join();
    }
}
