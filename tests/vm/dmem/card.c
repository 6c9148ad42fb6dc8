/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A GPU that is nothing but its memory, so that the kernel's dmem controller has something to
 * limit in a virtual machine: a region like amdgpu's, and a device as whose client a process
 * has memory of it. What it says in sysfs and in fdinfo is said as amdgpu says it.
 *
 *   ioctl(fd, BERTH_CARD_ALLOCATE, &bytes)    charged to the caller's cgroup
 *
 * ENOMEM beyond its limit. What a client has goes back when its last descriptor is closed. */
#include <linux/cgroup_dmem.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/ioctl.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#define BERTH_CARD_ALLOCATE _IOW('b', 1, u64)

static const char address[] = "0000:03:00.0";
static const u64 size = 1024ULL << 20;

struct allocation {
    struct list_head next;
    struct dmem_cgroup_pool_state *pool;
    u64 bytes;
};

struct client {
    struct list_head allocations;
    u64 bytes;
    unsigned int id;
};

static struct dmem_cgroup_region *region;
/* Protects everything below, and all clients. */
static DEFINE_MUTEX(card_lock);
static u64 used;
static unsigned int last_id;

static int
card_open(struct inode *inode, struct file *file)
{
    struct client *client = kzalloc(sizeof *client, GFP_KERNEL);

    if (!client)
        return -ENOMEM;
    INIT_LIST_HEAD(&client->allocations);
    mutex_lock(&card_lock);
    client->id = ++last_id;
    mutex_unlock(&card_lock);
    file->private_data = client;
    return 0;
}

static int
card_release(struct inode *inode, struct file *file)
{
    struct client *client = file->private_data;
    struct allocation *a, *after;

    mutex_lock(&card_lock);
    list_for_each_entry_safe(a, after, &client->allocations, next)
    {
        dmem_cgroup_uncharge(a->pool, a->bytes);
        used -= a->bytes;
        kfree(a);
    }
    mutex_unlock(&card_lock);
    kfree(client);
    return 0;
}

static long
allocate(struct client *client, struct allocation *a)
{
    if (a->bytes > size - used)
        return -ENOMEM;
    if (dmem_cgroup_try_charge(region, a->bytes, &a->pool, NULL))
        return -ENOMEM;
    used += a->bytes;
    client->bytes += a->bytes;
    list_add(&a->next, &client->allocations);
    return 0;
}

static long
card_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
    struct allocation *a;
    u64 bytes;
    long status;

    if (request != BERTH_CARD_ALLOCATE)
        return -ENOTTY;
    if (copy_from_user(&bytes, (void __user *)argument, sizeof bytes))
        return -EFAULT;
    a = kzalloc(sizeof *a, GFP_KERNEL);
    if (!a)
        return -ENOMEM;
    a->bytes = bytes;
    mutex_lock(&card_lock);
    status = allocate(file->private_data, a);
    mutex_unlock(&card_lock);
    if (status)
        kfree(a);
    return status;
}

static void
card_show_fdinfo(struct seq_file *out, struct file *file)
{
    struct client *client = file->private_data;

    mutex_lock(&card_lock);
    seq_printf(out, "drm-driver:\tamdgpu\ndrm-client-id:\t%u\ndrm-pdev:\t%s\n", client->id,
               address);
    seq_printf(out, "drm-resident-vram:\t%llu KiB\n", client->bytes >> 10);
    mutex_unlock(&card_lock);
}

static const struct file_operations card_operations = {
    .owner = THIS_MODULE,
    .open = card_open,
    .release = card_release,
    .unlocked_ioctl = card_ioctl,
    .show_fdinfo = card_show_fdinfo,
};

static ssize_t
mem_info_vram_total_show(struct device *dev, struct device_attribute *attr, char *buf)
{
    return sysfs_emit(buf, "%llu\n", size);
}
static DEVICE_ATTR_RO(mem_info_vram_total);

static ssize_t
mem_info_vram_used_show(struct device *dev, struct device_attribute *attr, char *buf)
{
    return sysfs_emit(buf, "%llu\n", READ_ONCE(used));
}
static DEVICE_ATTR_RO(mem_info_vram_used);

static struct attribute *card_attrs[] = {&dev_attr_mem_info_vram_total.attr,
                                         &dev_attr_mem_info_vram_used.attr, NULL};
ATTRIBUTE_GROUPS(card);

static struct miscdevice card = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "berth-card",
    .nodename = "dri/renderD128",
    .mode = 0666,
    .fops = &card_operations,
    .groups = card_groups,
};

static int __init
card_init(void)
{
    const struct dmem_cgroup_init init = {.size = size};

    region = dmem_cgroup_register_region(&init, "drm/%s/vram", address);
    if (IS_ERR(region))
        return PTR_ERR(region);
    return misc_register(&card);
}
device_initcall(card_init);
